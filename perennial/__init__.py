"""`import perennial; perennial.lake().sql("SELECT …").df()`: what notebooks and other programs use."""

from perennial.notebook import Answer, Lake, lake

__all__ = ["Answer", "Lake", "lake"]
