"""schemas/order.md in Python: which samples make which batch and what happens to images, for scripts that compare the
library with it."""
import bisect
import itertools
import math

BITS = (1 << 64) - 1
STRIDE = 0x9E3779B97F4A7C15
EPOCH_ORDER, WINDOW_ORDER, ECHO_ORDER, FLIP, CROP, RESIZED_CROP, DRAW, CHOICE, MIXTURE = 3, 4, 5, 6, 7, 12, 14, 15, 16
RANK_ORDER, STREAM_ORDER, FLIP_VERTICAL, QUARTER_TURNS, SEQUENCE_CUT = 17, 18, 19, 20, 21
NEGATIVES, RARE_NEGATIVES, PAIR_NEGATIVES = 10, 11, 22


def mix_bits(bits):
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & BITS
    return bits ^ (bits >> 31)


def random_bits(seed, purpose, index):
    key = mix_bits((seed + STRIDE * (purpose + 1)) & BITS)
    return mix_bits((mix_bits(key ^ ((index + 1) * STRIDE & BITS)) + key) & BITS)


def below(count, key, purpose, index):
    return random_bits(key, purpose, index) * count >> 64


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


# One stream of one, and of `count` streams one: (number, count).
WHOLE = (0, 1)


def span_of(size, stream):
    """Where a stream's share of `size` things in a row begins and ends."""
    number, count = stream
    return size * number // count, size * (number + 1) // count


def stream_seed(seed, stream):
    return random_bits(seed, STREAM_ORDER, stream[0]) if stream[0] else seed


def order_of(shuffle, seed, window_chunks, epoch, counts, stream=WHOLE):
    """The sample at each position of an epoch, or of a stream of it; counts: the samples of each chunk."""
    samples, firsts = sum(counts), list(itertools.accumulate(counts, initial=0))
    begin, end = span_of(samples, stream)
    key = random_bits(seed, EPOCH_ORDER, epoch)
    if shuffle == NONE:
        return list(range(begin, end))
    if shuffle == GLOBAL:
        return list(map(Permutation(samples, key), range(samples)))
    visited = list(map(Permutation(len(counts), key), range(len(counts))))
    listed = [(chunk, firsts[chunk] + i) for chunk in visited for i in range(counts[chunk])][begin:end]
    own = visited
    if stream != WHOLE and listed:
        own = visited[visited.index(listed[0][0]):visited.index(listed[-1][0]) + 1]
    window_seed = stream_seed(random_bits(seed, WINDOW_ORDER, epoch), stream)
    width, order = -(-window_chunks // stream[1]), []
    for window in range(0, len(own), width):
        chunks = set(own[window:window + width])
        held = [sample for chunk, sample in listed if chunk in chunks]
        positions = Permutation(len(held), random_bits(window_seed, WINDOW_ORDER, window // width))
        order += [held[positions(i)] for i in range(len(held))]
    return order


def in_turns(streams, unit):
    """The epoch of streams that take turns with `unit` entries each."""
    turns = sum(map(len, streams)) // (unit * len(streams))
    order = [entry for turn in range(turns) for stream in streams for entry in stream[turn * unit:(turn + 1) * unit]]
    return order + [entry for stream in streams for entry in stream[turns * unit:]]


def streamed(order, count, unit):
    """The epoch of which `order` gives each stream, in `count` streams."""
    return in_turns([order((number, count)) for number in range(count)], unit)


def whole_weights(weights):
    exponent = math.frexp(sum_in_order(weights))[1]
    return [max(1, math.floor(math.ldexp(weight, 62 - exponent))) if weight else 0 for weight in weights]


def sum_in_order(weights):
    total = 0.0  # sum() rounds otherwise from Python 3.12 on
    for weight in weights:
        total += weight
    return total


def draws_of(weights, count, seed, epoch):
    """The samples that are drawn with replacement, in their order."""
    whole, key = whole_weights(weights), random_bits(seed, DRAW, epoch)
    ends, part = list(itertools.accumulate(whole)), sum(whole) // count
    return [bisect.bisect_right(ends, k * part + below(part, key, DRAW, k)) for k in range(count)]


def choice_of(weights, count, seed, epoch):
    """The samples that are drawn without replacement, in their order."""
    key = random_bits(seed, CHOICE, epoch)
    keys = [(-log(((random_bits(key, CHOICE, i) >> 11) + 1) * 2.0**-53) / weight, i)
            for i, weight in enumerate(whole_weights(weights)) if weight]
    return sorted(i for _, i in sorted(keys)[:count])


def repeats_of(samples):
    """How many earlier entries of an ascending list are the same sample, for each."""
    return [at - bisect.bisect_left(samples, sample) for at, sample in enumerate(samples)]


def sampled_order_of(shuffle, seed, window_chunks, epoch, counts, samples, stream=WHOLE):
    """The sample and its repeat at each position of an epoch, or of a stream of it, that has `samples`, ascending."""
    ends = list(itertools.accumulate(counts))
    of_chunks = [bisect.bisect_left(samples, end) - bisect.bisect_left(samples, end - count)
                 for end, count in zip(ends, counts)]
    repeats = repeats_of(samples)
    return [(samples[entry], repeats[entry])
            for entry in order_of(shuffle, seed, window_chunks, epoch, [count for count in of_chunks if count], stream)]


def whole_shares(weights):
    total = sum_in_order(weights)
    shares = [weight / total for weight in weights]
    for period in range(len(shares), 65537):
        whole = [math.floor(share * period + 0.5) for share in shares]
        if min(whole) >= 1 and sum(whole) == period and all(
                abs(share * period - each) <= 1e-6 for share, each in zip(shares, whole)):
            return whole
    whole = [math.floor(share * 65536) for share in shares]
    for _, source in sorted((math.floor(share * 65536) - share * 65536, s)
                            for s, share in enumerate(shares))[:65536 - sum(whole)]:
        whole[source] += 1
    return whole


def share_sequence(weights):
    """The source at each position of one period."""
    whole = whole_shares(weights)
    period, used, sequence = sum(whole), [0] * len(whole), []
    for position in range(period):
        ready = [s for s, v in enumerate(whole) if used[s] * period // v <= position]
        sequence.append(min(ready, key=lambda s: (-(-(used[s] + 1) * period // whole[s]), s)))
        used[sequence[-1]] += 1
    return sequence


# Where a mixture has its shares, as the probes number them.
IN_BATCH, IN_EPOCH = range(2)


def mixed_order_of(shuffle, seed, window_chunks, epoch, shares, length, sources, lists=None, stream=WHOLE):
    """The sample and its repeat at each position of a mixture's epoch, or of a stream of it. sources: pairs of a weight and
    the samples of each chunk; lists: for each source a function of its own seed and epoch that gives its samples, or all of
    them."""
    sequence = share_sequence([weight for weight, _ in sources])
    period = len(sequence)
    begin, end = span_of(length or sum(sum(counts) for _, counts in sources), stream)
    length, first_of_all = end - begin, span_of(period, stream)[0]
    first_entry = first_of_all + epoch * length
    positions = [sequence[entry % period] for entry in range(first_entry, first_entry + length)]
    block_seed = stream_seed(random_bits(seed, WINDOW_ORDER, epoch), stream)
    first_sample, of_source = 0, []
    for number, (_, counts) in enumerate(sources):
        own_seed, uses, orders = random_bits(seed, MIXTURE, number), positions.count(number), {}
        before = lambda entries: entries // period * sequence.count(number) + sequence[:entries % period].count(number)
        all_samples = lambda *_: list(range(sum(counts)))
        list_of = lists[number] if lists else all_samples
        count = len(list_of(own_seed, 0))
        is_divided = count >= stream[1]
        own_begin, own_end = span_of(count, stream)
        own_count = own_end - own_begin if is_divided else count
        first_use = before(first_entry) - before(first_of_all) + (0 if is_divided else own_begin)
        first_epoch, found = first_use // own_count if stream == WHOLE else 0, []
        for use in range(first_use, first_use + uses):
            own_epoch = use // own_count
            if own_epoch not in orders:
                orders[own_epoch] = sampled_order_of(shuffle, own_seed, window_chunks, own_epoch, counts,
                                                     list_of(own_seed, own_epoch), stream if is_divided else WHOLE)
            sample, repeat = orders[own_epoch][use % own_count]
            uses_of_epoch = own_epoch - first_epoch if is_divided else own_epoch * stream[1] + stream[0]
            found.append((first_sample + sample, repeat + (uses_of_epoch << 32)))
        of_source.append(iter(found))
        first_sample += sum(counts)
    order = [next(of_source[source]) for source in positions]
    if shares == IN_EPOCH:
        for block in range(0, length, 4096):
            held = order[block:block + 4096]
            shuffled = Permutation(len(held), random_bits(block_seed, WINDOW_ORDER, block // 4096))
            order[block:block + 4096] = [held[shuffled(i)] for i in range(len(held))]
    return order


def turned_block(rank, ranks, seed, entry, count, length, weights):
    """Which of the blocks of all ranks, `count` entries of a mixture's sequence from `entry` on, a rank has."""
    sequence, whole = share_sequence(weights), whole_shares(weights)
    sources = [sequence[at % len(sequence)] for at in range(entry, entry + count)]
    rarest = min(set(sources), key=lambda s: (whole[s], s))
    offset, periods = sources.index(rarest), entry // len(sequence)
    use = periods * whole[rarest] + sequence[:entry % len(sequence)].count(rarest)
    key = random_bits(random_bits(seed, RANK_ORDER, rarest), RANK_ORDER, use // ranks)
    return (rank + offset // length + ranks - Permutation(ranks, key)(use % ranks)) % ranks


def batches_of(samples, size, rank, ranks, pad, drop_last, echo, seed, epoch, first, in_streams=False, mixed=None):
    """The positions of each batch; mixed: the weights of a mixture."""
    def add(length):
        count = min(samples - first, length * ranks)
        block = turned_block(rank, ranks, seed, epoch * samples + first, count, length, mixed) if mixed else rank
        begin = first + block * length
        blocks.append([position % samples for position in range(begin, begin + length)])
        keys.append(begin)

    def add_own(length):
        begin, end = (first + at for at in span_of(samples - first, (rank, ranks)))
        if begin == end:
            begin = end = first - (ranks - rank) * echo * size if first >= ranks * echo * size else rank % samples
        blocks.append([*range(begin, end), begin][:length])
        keys.append(begin)
    blocks, keys = [], []
    while samples - first >= echo * size * ranks:
        add(echo * size)
        first += echo * size * ranks
    share = (samples - first + (ranks - 1 if pad else 0)) // ranks
    share -= share % size if drop_last else 0
    if share:
        (add_own if in_streams else add)(share)
    echo_seed = random_bits(seed, ECHO_ORDER, epoch)
    batches = []
    for block, key in zip(blocks, keys):
        for turn in range(echo):
            positions = block
            if echo > 1:
                permutation = Permutation(len(block), random_bits(random_bits(echo_seed, ECHO_ORDER, key), ECHO_ORDER, turn))
                positions = [block[permutation(i)] for i in range(len(block))]
            batches += [positions[i:i + size] for i in range(0, len(block), size)]
    return batches


def use_of(epoch, sample, echo_pass):
    return mix_bits((mix_bits((mix_bits(epoch + 1) + sample) & BITS) + echo_pass) & BITS)


def share(bits):
    return (bits >> 11) * 2.0**-53


def is_flipped(probability, seed, epoch, sample, echo_pass=0):
    return share(random_bits(seed, FLIP, use_of(epoch, sample, echo_pass))) < probability


def is_flipped_vertically(probability, seed, epoch, sample, echo_pass=0):
    return share(random_bits(seed, FLIP_VERTICAL, use_of(epoch, sample, echo_pass))) < probability


def quarter_turns(seed, epoch, sample, echo_pass=0):
    """Counterclockwise, as numpy.rot90 counts them."""
    return below(4, seed, QUARTER_TURNS, use_of(epoch, sample, echo_pass))


def log(x):
    m, e = math.frexp(x)
    if m < 0.7071067811865476:
        m, e = 2 * m, e - 1
    s = (m - 1) / (m + 1)
    q, total = s * s, 1 / 23
    for n in range(21, 0, -2):
        total = total * q + 1 / n
    return e * 0.6931471805599453 + 2 * s * total


def exp(x):
    k = math.floor(x * 1.4426950408889634 + 0.5)
    r, total = x - k * 0.6931471805599453, 1.0
    for n in range(13, 0, -1):
        total = total * r / n + 1
    return math.ldexp(total, k)


def resized_crop(height, width, area, aspect, seed, epoch, sample, echo_pass=0):
    """The box of a random resized crop: first row, first column, rows, columns."""
    key = random_bits(seed, RESIZED_CROP, use_of(epoch, sample, echo_pass))

    def uniform(low, high, k):
        return low + (high - low) * share(random_bits(key, RESIZED_CROP, k))

    for t in range(0, 40, 4):
        box_area = height * width * uniform(*area, t)
        box_aspect = exp(uniform(log(aspect[0]), log(aspect[1]), t + 1))
        w, h = round(math.sqrt(box_area * box_aspect)), round(math.sqrt(box_area / box_aspect))
        if 1 <= w <= width and 1 <= h <= height:
            return below(height - h + 1, key, RESIZED_CROP, t + 2), below(width - w + 1, key, RESIZED_CROP, t + 3), h, w
    w, h = width, height
    if width / height < aspect[0]:
        h = max(round(width / aspect[0]), 1)
    if width / height > aspect[1]:
        w = max(round(height * aspect[1]), 1)
    return (height - h) // 2, (width - w) // 2, h, w


class AliasTables:
    """Items by popularity, as Walker and Vose draw them."""

    def __init__(self, counts, power):
        weights = [count ** power if count else 0.0 for count in map(float, counts)]
        total = sum_in_order(weights)
        share = [weight / total * len(counts) for weight in weights]
        popular = counts.index(max(counts))
        self.keep, self.other = [float(count > 0) for count in counts], [popular] * len(counts)
        small, large = ([i for i, each in enumerate(share) if (each < 1) == is_small] for is_small in (True, False))
        while small and large:
            item = small.pop()
            self.keep[item], self.other[item] = share[item], large[-1]
            share[large[-1]] -= 1 - share[item]
            if share[large[-1]] < 1:
                small.append(large.pop())

    def draw(self, key, index):
        bits = random_bits(key, NEGATIVES, index)
        slot = (bits >> 32) * len(self.keep) >> 32
        return slot if (bits & 0xFFFFFFFF) / 4294967296 < self.keep[slot] else self.other[slot]

    def draw_rare(self, own, key, index):
        """Of the items that are left, where those drawn are all the user's."""
        weights = [0.0] * len(self.keep)
        for slot, (keep, other) in enumerate(zip(self.keep, self.other)):
            weights[slot] += keep if slot not in own else 0
            weights[other] += 1 - keep if other not in own else 0
        sums = list(itertools.accumulate(weights))
        return bisect.bisect_right(sums, share(random_bits(key, RARE_NEGATIVES, index)) * sums[-1])


def negatives_of(own, columns, count, seed, epoch, rating, echo_pass=0, tables=None):
    """The negatives of a rating whose user has the items `own`: all items alike, or by tables."""
    key, own = random_bits(seed, PAIR_NEGATIVES, use_of(epoch, rating, echo_pass)), set(own)
    if tables is None:
        others = [item for item in range(columns) if item not in own]
        return [others[below(len(others), key, PAIR_NEGATIVES, j)] for j in range(count)]
    draws = ((tables.draw(key, 64 * j + t) for t in range(64)) for j in range(count))
    found = (next((item for item in each if item not in own), None) for each in draws)
    return [tables.draw_rare(own, key, j) if item is None else item for j, item in enumerate(found)]


def sequence_window(count, length, cut, seed, epoch, row):
    """Which items of a row of `count`, in the order of time, are its sequence: [begin, end)."""
    end = count
    if count > length and cut == "sliding":
        step = max(length - 1, 1)
        end = count - epoch % (1 - (length - count) // step) * step
    if count > length and cut == "random":
        end = length + below(count - length + 1, random_bits(seed, SEQUENCE_CUT, epoch), SEQUENCE_CUT, row)
    return max(end - length, 0), end
