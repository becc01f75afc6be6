"""Operators of searches: levels, buckets, trees."""
