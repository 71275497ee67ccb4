"""CLIP2Protect: prompts with words that the text-image model does not know, its generator, and batches."""

from types import SimpleNamespace

import pytest
import torch

from masquerade.backbones.semantics import network
from masquerade.backbones.semantics.network import Words
from masquerade.core.errors import ParameterError
from masquerade.methods._batches import fill_batches
from masquerade.methods.clip2protect.search import Search


def test_prompt_with_unknown_words_is_refused_with_the_nearest_known_ones():
    tokenizer = Words(["person", "wearing", "lipstick"], 8)
    network.refuse_unknown(["person wearing lipstick", "$ person"], tokenizer)
    with pytest.raises(ParameterError, match=r"words lipstik\. 'lipstik': .*lipstick"):
        network.refuse_unknown(["person wearing lipstik"], tokenizer)


def test_tokenizer_of_word_pieces_takes_every_prompt():
    network.refuse_unknown(["tanned makeup with purple lipstick"], object())


def test_other_generator_than_stylegan2_is_refused():
    with pytest.raises(ParameterError, match="tunes a StyleGAN2"):
        Search(SimpleNamespace(generator=torch.nn.Linear(1, 1)), None, None, None)


def test_last_batch_is_filled_up_with_its_last_face():
    assert fill_batches(5, 3).tolist() == [[0, 1, 2], [3, 4, 4]]
    assert fill_batches(1, 2).tolist() == [[0, 0]]
