"""`tvsvm datasets`: which data sets there are, and where each comes from."""

from tvsvm.cli.console import Console, aligned
from tvsvm.cli.options import AsJson


def datasets(as_json: AsJson = False) -> None:
    """List the data sets that `reproduce --dataset` takes, and where each comes from."""
    from tvsvm.datasets import available

    places = available()
    console = Console(quiet=False, as_json=as_json)
    console.result(aligned(list(places.items())), {"datasets": places})
