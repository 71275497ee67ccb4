"""Faces that a published generator draws: several pictures of a person, a filter of bad draws, and their labels."""
