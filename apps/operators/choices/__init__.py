"""Passes in which trees and nodes choose: an edge of a spanning forest, a color."""
