"""The algorithms: a main loop over operators and a sync, run by one harness."""

from cusp.runtime import signals

if __name__ == "apps":  # python -m apps.bfs; as a part of the library, this is cusp.apps
    signals.start_program()
