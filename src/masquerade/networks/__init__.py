"""Architectures only: ``nn.Module`` classes with their paper, no weights, no training, no preprocessing."""
