"""All benchmarks of speed: python -m benchmarks. Accuracy takes hours: benchmarks.accuracy."""

import runpy

for name in ("tv", "neighbors", "kernel", "speed"):
    print(f"\n== benchmarks.{name}", flush=True)
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
