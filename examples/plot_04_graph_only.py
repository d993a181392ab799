"""
A graph without features
========================

Zachary's karate club: 34 members, who meets whom, and a quarrel after which the club split. The
instructor and the officer are labelled; who went with whom?
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from tvsvm import CheegerRLS, Graph
from tvsvm.layout import layout

club = nx.karate_club_graph()
graph = Graph.from_networkx(club)
truth = np.array([club.nodes[node]["club"] for node in club])

partial = np.full(len(truth), None)
partial[0], partial[33] = truth[0], truth[33]

# %%
# There are no rows of numbers. The identity as precomputed kernel says that all members are equally
# unlike, and leaves everything to the graph.

model = CheegerRLS(graph=graph, kernel="precomputed", random_state=0)
model.fit(np.eye(graph.n_nodes), partial)
wrong = np.flatnonzero(model.transduction_ != truth)
print(f"{wrong.size} of {truth.size} wrong: members {wrong.tolist()}")

# %%
# Rings mark the members who went the other way, stars the two labels.

positions = layout(graph)
colors = {"Mr. Hi": "#4477aa", "Officer": "#ee6677"}
figure, axis = plt.subplots(figsize=(7, 5.4), layout="constrained")
for i, j in graph.edges:
    axis.plot(*positions[[i, j]].T, color="lightgray", linewidth=0.8, zorder=1)
for name, color in colors.items():
    members = model.transduction_ == name
    axis.scatter(*positions[members].T, color=color, s=120, label=name, zorder=2)
axis.scatter(*positions[[0, 33]].T, color="white", marker="*", s=60, zorder=3)
axis.scatter(*positions[wrong].T, facecolors="none", edgecolors="black", s=260, zorder=3)
axis.legend(frameon=False, title="with")
axis.set(title=f"Karate club, two labels: {wrong.size} of {truth.size} wrong")
axis.axis("off")
plt.show()
