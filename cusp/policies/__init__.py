"""Policies: a master rule and an edge rule, which are compiled into the loops of the partitioner."""

from cusp.policies.policy import DEFAULT_ROUNDS, DEFAULT_THRESHOLD, POLICIES, Policy, installed_policies, load_policy

__all__ = ["DEFAULT_ROUNDS", "DEFAULT_THRESHOLD", "POLICIES", "Policy", "installed_policies", "load_policy"]
