"""x"""
def verify_truss(graph, sync, answer, k): pass
