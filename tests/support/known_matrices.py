"""The ratings of known_matrices.h."""
import numpy as np

ROWS, COLUMNS, CHUNK_ROWS = 10, 700, 4
U = np.uint64


def mix_bits(bits):
    """SplitMix64's finaliser."""
    bits = (bits ^ (bits >> U(30))) * U(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> U(27))) * U(0x94D049BB133111EB)
    return bits ^ (bits >> U(31))


def known_matrix(kind, matrix):
    """The ratings of X (0) or held_out (1), dense, in f32."""
    row, column = np.meshgrid(np.arange(ROWS, dtype=U), np.arange(COLUMNS, dtype=U), indexing="ij")
    bits = mix_bits((row << U(32)) + column)
    rated = (row % U(5) != 4) & ((row % U(3) != 2) | (column % U(97) == 0)) & (bits % U(100) < 30)
    rated &= (bits // U(128) % U(5) == 0) == (matrix == 1)
    numbers = (U(1) + mix_bits(row * U(1000) + column) % U(200)).astype(np.float64)
    ratings = {"none": np.ones_like(numbers), "u8": numbers, "half": numbers * 0.5, "u16": numbers * 300,
               "f32": numbers.astype(np.float32) / np.float32(3)}[kind]
    return np.where(rated, ratings, 0).astype(np.float32)


USERS = [f"user {row * row}" for row in range(ROWS)]
ITEMS = [f"ítem {column * column}" for column in range(COLUMNS)]
