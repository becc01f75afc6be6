"""The algorithms: a main loop over operators and a sync, run by one harness."""

if __name__ == "apps":  # python -m apps.bfs; as a part of the library, this is cusp.apps
    from cusp.runtime import early

    early.listen()

    from cusp.runtime import signals

    signals.start_program()
