"""What all attacks have in common: the people from whom attackers learn, and the distances that measure an attack.

The attackers themselves, and the trainings that some of them share, are one folder up.
"""
