"""What the datasets of rendered faces share. The package drawnpeople renders them."""
