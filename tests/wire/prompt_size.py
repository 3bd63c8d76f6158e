"""What a prompt for a small model may take."""

from typing import Final

from zuno.llm.prompts import Prompt, estimate_tokens

SMALL_MODEL_TOKENS: Final = 1_200


def count_tokens(prompt: Prompt) -> int:
    return estimate_tokens(prompt.system) + estimate_tokens(prompt.user)
