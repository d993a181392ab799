"""Laws that hold for every graph and every function, checked on random ones."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from references import random_graph, tv_objective

from tvsvm.graph import Graph
from tvsvm.solvers import graph_tv_prox

law = settings(deadline=None, derandomize=True, max_examples=40, database=None)
seeds = st.integers(0, 2**32 - 1)
TIGHT = 1e-11


def problem(seed, c=2):
    """A small graph, functions on it and strengths over four decades."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(2, 13)), density=rng.uniform(0.1, 0.9))
    Z = rng.standard_normal((graph.n_nodes, c))
    return rng, graph, Z, 10.0 ** rng.uniform(-2, 2, c)


@law
@given(seeds)
def test_difference_and_its_adjoint(seed):
    rng, graph, F, _ = problem(seed)
    P = rng.standard_normal((graph.n_edges, 2))
    left = np.sum(graph.difference(F) * P)
    np.testing.assert_allclose(left, np.sum(F * graph.difference_adjoint(P)), atol=1e-10)


@law
@given(seeds)
def test_solution_and_dual_add_up_to_the_data(seed):
    # Moreau: G is the prox, Dᵀp the projection of Z on the dual ball.
    _, graph, Z, strength = problem(seed)
    result = graph_tv_prox(graph, Z, strength, tol=TIGHT)
    np.testing.assert_allclose(
        result.solution + graph.difference_adjoint(result.dual), Z, atol=1e-4
    )
    bound = np.outer(graph.edge_weights, strength)
    assert np.all(np.abs(result.dual) <= bound * (1 + 1e-12))
    # ⟨Dᵀp, G⟩ attains the total variation.
    np.testing.assert_allclose(
        np.sum(graph.difference_adjoint(result.dual) * result.solution),
        np.sum(strength * graph.total_variation(result.solution)),
        atol=1e-4 * (1 + np.sum(bound)),
    )


@law
@given(seeds)
def test_prox_inequality(seed):
    # F(X) - F(G) ≥ ½|X - G|² for every X: G minimises a 1-strongly convex F.
    rng, graph, Z, strength = problem(seed)
    G = graph_tv_prox(graph, Z, strength, tol=TIGHT).solution
    least = tv_objective(graph, G, Z, strength)
    for scale in (1e-2, 1.0):
        X = G + scale * rng.standard_normal(G.shape)
        rise = tv_objective(graph, X, Z, strength) - least
        assert rise >= 0.5 * np.sum((X - G) ** 2) - 1e-8 * (1 + abs(least))


@law
@given(seeds, st.sampled_from([1, 2, 5]), st.booleans(), st.booleans())
def test_gap_bounds_the_true_suboptimality(seed, sweeps, simplex, some_fixed):
    rng, graph, Z, strength = problem(seed, c=3)
    fixed = rng.random(graph.n_nodes) < (0.3 if some_fixed else 0.0)
    if simplex:
        Z[fixed] = np.eye(3)[rng.integers(0, 3, fixed.sum())]
    options = {"simplex": simplex, "fixed": fixed}
    rough = graph_tv_prox(graph, Z, strength, max_iter=sweeps, tol=1e-15, **options)
    fine = graph_tv_prox(graph, Z, strength, tol=1e-10, **options)
    excess = tv_objective(graph, rough.solution, Z, strength) - tv_objective(
        graph, fine.solution, Z, strength
    )
    assert excess <= rough.gap + 1e-9 * (1 + abs(excess))
    assert rough.gap >= 0


@law
@given(seeds)
def test_nonexpansive(seed):
    rng, graph, Z, strength = problem(seed)
    other = Z + rng.standard_normal(Z.shape)
    G, H = (graph_tv_prox(graph, V, strength, tol=TIGHT).solution for V in (Z, other))
    assert np.linalg.norm(G - H) <= np.linalg.norm(Z - other) + 1e-4


@law
@given(seeds)
def test_means_of_components_are_kept(seed):
    _, graph, Z, strength = problem(seed)
    G = graph_tv_prox(graph, Z, strength, tol=TIGHT).solution
    for component in range(graph.n_components):
        here = graph.component_labels == component
        np.testing.assert_allclose(G[here].mean(axis=0), Z[here].mean(axis=0), atol=1e-8)


@law
@given(seeds)
def test_permutation_of_nodes_and_columns(seed):
    rng, graph, Z, strength = problem(seed)
    order = rng.permutation(graph.n_nodes)
    permuted = Graph(graph.affinity.toarray()[np.ix_(order, order)])
    G = graph_tv_prox(graph, Z, strength, tol=TIGHT).solution
    H = graph_tv_prox(permuted, Z[order][:, ::-1], strength[::-1], tol=TIGHT).solution
    np.testing.assert_allclose(H, G[order][:, ::-1], atol=1e-4)


@law
@given(seeds)
def test_simplex_rows_stay_on_the_simplex(seed):
    _, graph, Z, strength = problem(seed, c=4)
    result = graph_tv_prox(graph, Z, strength, simplex=True, tol=1e-3)
    assert result.solution.min() >= 0
    np.testing.assert_allclose(result.solution.sum(axis=1), 1, atol=1e-12)


@law
@given(seeds)
def test_scaling_weights_equals_scaling_strength(seed):
    _, graph, Z, strength = problem(seed)
    G = graph_tv_prox(graph, Z, 3.0 * strength, tol=TIGHT).solution
    H = graph_tv_prox(Graph(3.0 * graph.affinity), Z, strength, tol=TIGHT).solution
    np.testing.assert_allclose(G, H, atol=1e-4)
