"""The installed efficientnet-lite-pytorch has the internals that `efficientnet_lite_internals` uses."""

from importlib.metadata import version

import torch

from masquerade.networks import efficientnet_lite0, efficientnet_lite_internals


def test_module_is_written_for_the_installed_and_locked_version(root):
    assert version("efficientnet-lite-pytorch") == efficientnet_lite_internals.VERSION
    assert (
        f"efficientnet-lite-pytorch=={efficientnet_lite_internals.VERSION}\n"
        in (root / "requirements.lock").read_text()
    )


def test_blocks_one_after_the_other_give_the_features_of_the_network():
    network = efficientnet_lite0.network()
    blocks = efficientnet_lite_internals.blocks(network)
    assert len(blocks) == 18  # the stem, 16 blocks, the head
    signal = images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        for block in blocks:
            signal = block(signal)
        assert torch.equal(signal, network.extract_features(images))
