"""The identity encoder of the losses of the methods (IR-SE, ArcFace): parameters and the published weights.

Its training is in recognition/, which the recognizers share; its architecture is in networks/ir_se.py.
"""
