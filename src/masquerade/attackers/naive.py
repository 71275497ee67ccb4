"""The attacker of the papers: a recognizer that knows clear faces alone."""

from masquerade.attackers import Attacker


class Naive(Attacker):
    """Compares anonymized pictures with clear ones as they are. It knows nothing of the method."""

    title = "Naive"
    source = "Newton et al. 2005, Preserving privacy by de-identifying face images (naive recognition)"
    asks = "naming"
