"""HANDS: the one room that moves money. It forms no opinion and skips no ruling."""
