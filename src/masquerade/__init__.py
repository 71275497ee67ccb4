"""Masquerade rebuilds the matrix of face-anonymization papers: methods x datasets x metrics -> tables and figures."""
