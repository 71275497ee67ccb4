"""The installed efficientnet-lite-pytorch has the internals that `efficientnet_lite_internals` uses."""

from importlib.metadata import version

import torch

from masquerade.networks import efficientnet_lite_internals


def test_module_is_written_for_the_installed_and_locked_version(root):
    assert version("efficientnet-lite-pytorch") == efficientnet_lite_internals.VERSION
    assert (
        f"efficientnet-lite-pytorch=={efficientnet_lite_internals.VERSION}\n"
        in (root / "requirements.lock").read_text()
    )


def test_blocks_one_after_the_other_give_the_features_of_the_network():
    network = efficientnet_lite_internals.network(0)
    blocks = efficientnet_lite_internals.list_blocks(network)
    assert len(blocks) == 18  # the stem, 16 blocks, the head
    signal = images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        for block in blocks:
            signal = block(signal)
        assert torch.equal(signal, network.extract_features(images))


def test_network_with_fewer_copies_gives_the_same_values():
    images = torch.rand(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = efficientnet_lite_internals.network(0).extract_features(images)
        network = efficientnet_lite_internals.quicken(efficientnet_lite_internals.network(0))
        assert torch.equal(network.extract_features(images), expected)
    padded = [layer for layer in network.modules() if isinstance(layer, torch.nn.ZeroPad2d)]
    assert len(padded) == 5, "those with stride 2, whose padding is one-sided"
    assert all(layer.inplace for layer in network.modules() if isinstance(layer, torch.nn.ReLU6))
