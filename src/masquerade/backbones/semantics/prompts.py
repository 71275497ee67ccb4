"""Checks the words of prompts before they reach the text-image model."""

from collections.abc import Sequence

from masquerade.backbones.semantics.network import Words, words_of
from masquerade.core.errors import ParameterError
from masquerade.core.suggestions import nearest


def refuse_unknown(sentences: Sequence[str], tokenizer: object) -> None:
    """Raises ParameterError, with the nearest known words, if the text-image model does not know a word.

    ``$`` in a sentence stands for another sentence. A tokenizer of word pieces, such as CLIP's, knows all words.
    """
    if not isinstance(tokenizer, Words):
        return
    words = sorted({word for sentence in sentences for word in words_of(sentence.replace("$", " "))})
    unknown = [word for word in words if word not in tokenizer.ids]
    if unknown:
        hints = " ".join(f"'{word}': {nearest(word, list(tokenizer.ids))}" for word in unknown)
        raise ParameterError(
            f"The text-image model learned no caption with the words {', '.join(unknown)}. {hints} Change the prompt, "
            "the source or the templates."
        )
