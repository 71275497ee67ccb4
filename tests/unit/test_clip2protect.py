"""CLIP2Protect: prompts with words that the text-image model does not know."""

import pytest

from masquerade.backbones.semantics import prompts
from masquerade.backbones.semantics.network import Words
from masquerade.core.errors import ParameterError


def test_prompt_with_unknown_words_is_refused_with_the_nearest_known_ones():
    tokenizer = Words(["person", "wearing", "lipstick"], 8)
    prompts.refuse_unknown(["person wearing lipstick", "$ person"], tokenizer)
    with pytest.raises(ParameterError, match=r"words lipstik\. 'lipstik': .*lipstick"):
        prompts.refuse_unknown(["person wearing lipstik"], tokenizer)


def test_tokenizer_of_word_pieces_takes_every_prompt():
    prompts.refuse_unknown(["tanned makeup with purple lipstick"], object())
