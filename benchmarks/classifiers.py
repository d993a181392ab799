"""The classifiers that benchmarks.accuracy compares ours with, each as a user would call it."""

from functools import partial
from importlib.metadata import version

import numpy as np

from tvsvm.experiments import Method


def label_spreading(case, rows):
    from sklearn.semi_supervised import LabelSpreading

    # scikit-learn takes a graph only as a kernel of the rows.
    model = LabelSpreading(kernel=lambda X, Z: case.graph.affinity, alpha=0.99, max_iter=1000)
    return model.fit(case.X[:, :1], case.shown(rows)).transduction_


def self_training(case, rows):
    from sklearn.semi_supervised import SelfTrainingClassifier
    from sklearn.svm import SVC

    model = SelfTrainingClassifier(SVC(probability=True, random_state=0))
    return model.fit(case.X, case.shown(rows)).predict(case.X)


def svc(case, rows):
    from sklearn.svm import SVC

    return SVC().fit(case.X[rows], case.y[rows]).predict(case.X)


def nearest_label(case, rows):
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(1).fit(case.X[rows], case.y[rows]).predict(case.X)


def graph_learning(case, rows, *, name, sizes=None):
    """A method of GraphLearning; class sizes "true", "uniform", or None where it needs none."""
    import graphlearning

    counts = np.bincount(case.y) / len(case.y)
    priors = {"true": counts, "uniform": np.full(len(counts), 1 / len(counts))}
    options = {"class_priors": priors[sizes]} if sizes else {}
    if name.startswith("poisson") and case.graph.n_components > 1:
        # Its default, conjugate gradients, may not converge there: 95 % error on coil20 after
        # 80 s, against 19 % after 0.1 s with its other solver.
        options["solver"] = "gradient_descent"
    model = getattr(graphlearning.ssl, name)(case.graph.affinity.astype(float), **options)
    return model.fit_predict(rows, case.y[rows])


def peers():
    """All of them by name."""
    ours = f"scikit-learn {version('scikit-learn')}"
    theirs = f"graphlearning {version('graphlearning')}"
    methods = [
        Method("1-NN", nearest_label, ours),
        Method("SVC", svc, ours),
        Method("LabelSpreading", label_spreading, ours),
        Method("Laplace", partial(graph_learning, name="laplace"), theirs),
        Method("Poisson", partial(graph_learning, name="poisson"), theirs),
    ]
    for sizes in ("uniform", "true"):
        for title, name in (("PoissonMBO", "poisson_mbo"), ("VolumeMBO", "volume_mbo")):
            predict = partial(graph_learning, name=name, sizes=sizes)
            methods.append(Method(f"{title}, {sizes} sizes", predict, theirs))
    methods.append(Method("SelfTraining(SVC)", self_training, ours))
    return {method.name: method for method in methods}
