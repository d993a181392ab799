"""``python -m tvsvm``: the command line, also where the `tvsvm` script is not on the path."""

from tvsvm.cli.main import app

if __name__ == "__main__":
    app()
