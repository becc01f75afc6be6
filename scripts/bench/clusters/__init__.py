"""Algorithms on several ranks and hosts: what is measured, and what is predicted."""
