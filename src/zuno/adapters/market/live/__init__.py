"""The trading desk's feeds as their vendors serve them."""
