"""schemas/order.md in Python: which samples make which batch, for scripts that compare the library with it."""
BITS = (1 << 64) - 1
STRIDE = 0x9E3779B97F4A7C15
EPOCH_ORDER, WINDOW_ORDER, ECHO_ORDER = 3, 4, 5


def mix_bits(bits):
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & BITS
    return bits ^ (bits >> 31)


def random_bits(seed, purpose, index):
    key = mix_bits((seed + STRIDE * (purpose + 1)) & BITS)
    return mix_bits((mix_bits(key ^ ((index + 1) * STRIDE & BITS)) + key) & BITS)


class Permutation:
    def __init__(self, count, key):
        self.count = count
        low_bits = ((count - 1).bit_length() + 1) // 2
        self.low = 1 << low_bits
        self.high = ((count - 1) >> low_bits) + 1
        start = mix_bits(key)
        self.keys = [mix_bits((start + STRIDE * (step + 1)) & BITS) for step in range(32 if count <= 64 else 10)]

    def __call__(self, index):
        while True:
            high, low = divmod(index, self.low)
            for step in range(0, len(self.keys), 2):
                low = (low + mix_bits(self.keys[step] ^ high)) % self.low
                high = (high + (mix_bits(self.keys[step + 1] ^ low) * self.high >> 64)) % self.high
            index = high * self.low + low
            if index < self.count:
                return index


# Shuffles, as the probes number them.
NONE, WINDOW, GLOBAL = range(3)


def order_of(shuffle, seed, window_chunks, epoch, counts):
    """The sample at each position of an epoch; counts: the samples of each chunk."""
    samples, firsts = sum(counts), [sum(counts[:chunk]) for chunk in range(len(counts))]
    key = random_bits(seed, EPOCH_ORDER, epoch)
    if shuffle == NONE:
        return list(range(samples))
    if shuffle == GLOBAL:
        return list(map(Permutation(samples, key), range(samples)))
    visited = list(map(Permutation(len(counts), key), range(len(counts))))
    window_seed = random_bits(seed, WINDOW_ORDER, epoch)
    order = []
    for window in range(0, len(counts), window_chunks):
        held = [firsts[chunk] + i for chunk in visited[window:window + window_chunks] for i in range(counts[chunk])]
        positions = Permutation(len(held), random_bits(window_seed, WINDOW_ORDER, window // window_chunks))
        order += [held[positions(i)] for i in range(len(held))]
    return order


def batches_of(samples, size, rank, ranks, pad, drop_last, echo, seed, epoch, first):
    blocks = []
    while samples - first >= echo * size * ranks:
        blocks.append((first + rank * echo * size, echo * size))
        first += echo * size * ranks
    share = (samples - first + (ranks - 1 if pad else 0)) // ranks
    share -= share % size if drop_last else 0
    blocks += [(first + rank * share, share)] if share else []
    echo_seed = random_bits(seed, ECHO_ORDER, epoch)
    batches = []
    for begin, count in blocks:
        for turn in range(echo):
            positions = list(range(begin, begin + count))
            if echo > 1:
                permutation = Permutation(count, random_bits(random_bits(echo_seed, ECHO_ORDER, begin), ECHO_ORDER, turn))
                positions = [begin + permutation(i) for i in range(count)]
            batches += [[position % samples for position in positions[i:i + size]] for i in range(0, count, size)]
    return batches
