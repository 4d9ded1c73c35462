"""Reads a shard part, or an HDF5 part of images, from schemas/*.md alone, with nothing of chunkhit's own code.

Needs numpy (and scipy for matrices), the command `zstd` and libxxhash. Raises ValueError on any difference from the pages."""
import ctypes
import struct
import subprocess

import numpy as np

HEADER, INDEX, PADDING, SEEK_TABLE = 0x184D2A50, 0x184D2A51, 0x184D2A52, 0x184D2A5E


def require(fact, what):
    if not fact:
        raise ValueError(what)


LIBXXHASH = ctypes.CDLL("libxxhash.so.0")
LIBXXHASH.XXH3_64bits.argtypes = ctypes.c_char_p, ctypes.c_size_t
LIBXXHASH.XXH3_64bits.restype = ctypes.c_uint64


def xxh3(data):
    """XXH3 of bytes. Releases of xxhsum print it in different forms."""
    data = bytes(data)
    return LIBXXHASH.XXH3_64bits(data, len(data))


def check_hash(data, expected, what):
    require(xxh3(data) == expected, f"{what}: another checksum")


def unzstd(frame):
    return subprocess.run(["zstd", "-dc"], input=bytes(frame), capture_output=True, check=True).stdout


def undo_photo(residuals, channels, height, width):
    """Turns the residuals of one sample into (channels, height, width)."""
    planes = np.frombuffer(residuals, np.uint8).reshape(channels, height, width)
    planes = planes.cumsum(axis=2, dtype=np.uint8).cumsum(axis=1, dtype=np.uint8)
    if channels == 3:
        planes[0] += planes[1]
        planes[2] += planes[1]
    return planes


class Numbers:
    """Takes numbers from the front of bytes."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, kind, count):
        array = np.frombuffer(self.data, kind, count, self.at)
        self.at += array.nbytes
        return array

    def number(self):
        return int(self.take("<u8", 1)[0])

    def planes(self, count):
        width = self.number()
        require(1 <= width <= 8, "integers of another width")
        planes = self.take(np.uint8, width * count).reshape(width, count).astype(np.uint64)
        return sum((plane << np.uint64(8 * place) for place, plane in enumerate(planes)), np.zeros(count, np.uint64))

    def ids(self, count, near=None):
        form = self.number()
        require(form in (0, 1), "ids of another form")
        if form == 0:
            lengths = self.planes(count)
            return self.names(np.cumsum(lengths), int(lengths.sum()))
        folded = self.planes(count)
        less = (folded >> np.uint64(1)) ^ (np.uint64(0) - (folded & np.uint64(1)))
        return [str(each) for each in (less + (0 if near is None else near)).astype("<i8").tolist()]

    def names(self, ends, text_bytes):
        text = self.take(np.uint8, text_bytes).tobytes()
        begins = np.concatenate([[0], ends[:-1]]).astype(int) if len(ends) else []
        return [text[b:e].decode() for b, e in zip(begins, ends)]


def leb128(data, count):
    """`count` numbers that fill their bytes."""
    data = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(data < 0x80)
    require(len(ends) == count and (count == 0 or ends[-1] == len(data) - 1), "a plane is not filled by its numbers")
    numbers, begin = np.zeros(count, np.uint64), np.concatenate([[0], ends[:-1] + 1]) if count else ends
    for place in range(5):
        there = begin + place <= ends
        bits = (data[(begin + place)[there]] & 0x7F).astype(np.uint64)
        numbers[there] |= bits << np.uint64(7 * place)
    require((ends - begin < 5).all() and (numbers < 1 << 32).all(), "a number is too long")
    return numbers.astype(np.int64)


def group_steps(first_bytes, more_bytes):
    """The steps of one group, which use all its bytes."""
    more, steps = iter(more_bytes), []
    for byte in first_bytes:
        step, place = byte & 0x7F, 7
        while byte >= 0x80:
            byte = next(more)
            step |= (byte & 0x7F) << place
            place += 7
        require(step < 1 << 32, "a step is too long")
        steps.append(step)
    require(next(more, None) is None, "a group has bytes too many")
    return steps


def row_columns(length, groups, gap=1):
    """The columns of a row from the next steps of the groups."""
    columns, n = [], 0
    for _ in range(length):
        n += next(groups[min(15, (4 * (n + 8) // length).bit_length())]) + gap
        columns.append(n - gap)
    return columns


class RowBlock:
    """The rows of one chunk: for each matrix its lengths, columns and ratings, its times and its ties, or nothing."""

    def __init__(self, data, column_count, has_times=False, has_repeats=False):
        self.row_count, version, matrices, value_type, zero, self.scale, self.first_row = struct.unpack_from("<I4BdQ", data)
        require(version in ((4,) if has_repeats else (2, 3) if has_times else (1,)) and zero == 0 and self.row_count > 0, "not a row block")
        gap = 0 if has_repeats else 1
        self.value_type, self.matrices, at = value_type, [], 24 + 152 * matrices
        for matrix in range(matrices):
            entries, longest, length_bytes = struct.unpack_from("<3Q", data, 24 + 152 * matrix)
            group_bytes = np.frombuffer(data, "<u4", 32, 48 + 152 * matrix).reshape(16, 2).astype(int)
            require(group_bytes[:, 0].sum() == entries, "the steps are not as many as the entries")
            lengths = leb128(data[at:at + length_bytes], self.row_count)
            at += length_bytes
            groups = []
            for first, more in group_bytes:
                groups.append(iter(group_steps(data[at:at + first], data[at + first:at + first + more])))
                at += first + more
            require(lengths.sum() == entries and lengths.max() == longest, "the lengths are not the header's")
            columns = np.array([column for length in lengths.tolist() for column in row_columns(length, groups, gap)], np.int64)
            require(all(next(group, None) is None for group in groups), "a group has steps too many")
            require((columns < column_count).all(), "a column is not there")
            kind = [None, "<u1", "<u2", "<f4"][value_type]
            numbers = np.frombuffer(data, kind, entries, at) if kind else np.ones(entries)
            at += numbers.nbytes if kind else 0
            times = np.zeros(0, np.int64)
            if has_times:
                earliest, later = (np.frombuffer(data, np.uint8, 8 * count, first).reshape(8, count).T.copy().view("<i8")[:, 0]
                                   for count, first in ((self.row_count, at), (entries, at + 8 * self.row_count)))
                at += 8 * (self.row_count + entries)
                times = np.repeat(earliest, lengths) + later
            ties = np.zeros(len(times), np.uint32)
            if version >= 3:
                ties = np.frombuffer(data, np.uint8, 4 * entries, at).reshape(4, entries).T.copy().view("<u4")[:, 0]
                at += 4 * entries
            self.matrices.append((lengths, columns, (numbers * self.scale).astype(np.float32), times, ties))
        require(at == len(data), "the block has another length")


class Shard:
    """All that a shard says: its attributes are named as in the page."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.read_header()
        self.read_index()
        self.read_seek_table()

    def read_header(self):
        data = self.data
        magic, size, text, version, kind = struct.unpack_from("<II16sII", data)
        require((magic, size, text) == (HEADER, 4088, b"chunkhit shard\r\n"), "not a shard")
        require(version in (1, 2) and kind in (1, 2), "another version or kind")
        self.kind = kind
        check_hash(data[:4088], struct.unpack_from("<Q", data, 4088)[0], "header")
        self.read_spec(32)
        require((version == 2) == (kind == 2 and self.has_repeats), "not the version of its rows")
        (self.sample_count, self.chunk_count, self.index_offset, self.index_bytes, self.index_hash,
         file_bytes) = struct.unpack_from("<6Q", data, 88)
        require(file_bytes == len(data), "another length")
        require(self.chunk_count == -(-self.sample_count // self.chunk_samples), "another number of chunks")

    def read_spec(self, at):
        self.pack_id, self.part_index = struct.unpack_from("<QI", self.data, at)
        if self.kind == 1:
            layout, self.height, self.width, self.channels = struct.unpack_from("<IIII", self.data, at + 12)
            self.layout = ["nhwc", "nchw"][layout]
            self.sample_bytes = self.height * self.width * self.channels
        else:
            self.value_type, self.matrices, has_times, zero, self.columns, self.scale = struct.unpack_from("<4BQd", self.data, at + 12)
            require(zero == 0 and has_times in (0, 1, 2), "bytes that should be zero are not")
            self.has_times, self.has_repeats = has_times > 0, has_times == 2
        self.codec = self.data[at + 32:at + 48].rstrip(b"\0").decode()
        self.chunk_samples, = struct.unpack_from("<Q", self.data, at + 48)

    def read_index(self):
        begin = self.index_offset + 8
        require(self.kind == 2 or self.index_offset % 4096 == 0, "the index is not aligned")
        require(struct.unpack_from("<II", self.data, self.index_offset) == (INDEX, self.index_bytes), "no index frame")
        index = self.data[begin:begin + self.index_bytes]
        check_hash(index, self.index_hash, "index")
        if self.kind == 2:
            return self.read_matrix_index(Numbers(unzstd(index)))
        chunks, samples = self.read_image_index(index)
        require((chunks, samples) == (self.chunk_count, self.sample_count), "other counts than the header's")

    def read_image_index(self, index, hashes_samples=False):
        numbers = Numbers(index)
        chunks, samples, label_kind, columns, classes, channels, *texts = [numbers.number() for _ in range(9)]
        self.chunks = numbers.take("<u8", 7 * chunks).reshape(chunks, 7).astype(object)
        if label_kind == 0:
            self.labels = numbers.take("<i8", samples)
        else:
            self.labels = numbers.take("<f4", samples * columns).reshape(samples, columns)
            numbers.at += samples * columns % 2 * 4
        self.rows = numbers.take("<u8", samples)
        if hashes_samples:
            block_bytes = self.block_bytes()
            self.sample_hashes = [numbers.take("<u8", -(-int(chunk[2]) // block_bytes)) for chunk in self.chunks]
            for chunk, hashes in zip(self.chunks, self.sample_hashes):
                check_hash(hashes.tobytes(), chunk[5], "hashes of samples")
        ends = [numbers.take("<u8", count) for count in (samples, classes, columns)]
        self.mean, self.std = numbers.take("<f8", channels), numbers.take("<f8", channels)
        self.files, self.classes, self.label_columns = [numbers.names(*pair) for pair in zip(ends, texts)]
        require(numbers.at == len(index), "the index has another length")
        return chunks, samples

    def read_matrix_index(self, numbers):
        chunks, samples, label_kind, columns, items = [numbers.number() for _ in range(5)]
        require((chunks, samples) == (self.chunk_count, self.sample_count), "other counts than the header's")
        self.chunks = numbers.take("<u8", 7 * chunks).reshape(chunks, 7).astype(object)
        if label_kind == 0:
            self.labels = (numbers.planes(samples) - np.uint64(1)).astype("<i8")
        else:
            self.labels = numbers.take("<f4", samples * columns).reshape(samples, columns)
        self.rows = numbers.planes(samples)
        self.files, self.classes = numbers.ids(samples, self.rows), numbers.ids(items)
        self.label_columns = numbers.ids(columns)
        require(numbers.at == len(numbers.data), "the index has another length")

    def read_seek_table(self):
        at = self.index_offset + 8 + self.index_bytes
        magic, size = struct.unpack_from("<II", self.data, at)
        frames, descriptor, footer = struct.unpack_from("<IBI", self.data, len(self.data) - 9)
        require((magic, footer, descriptor) == (SEEK_TABLE, 0x8F92EAB1, 0), "no seek table")
        require(at + 8 + size == len(self.data) and size == frames * 8 + 9, "the seek table has another length")
        entries = np.frombuffer(self.data, "<u4", frames * 2, at + 8).reshape(frames, 2).astype(int)
        position, frame_sizes = 0, []
        for stored, raw in entries:
            frame_magic, frame_size = struct.unpack_from("<II", self.data, position)
            require((raw == 0) == (frame_magic in (HEADER, INDEX, PADDING)), "the seek table names no frame")
            if raw == 0:
                require(frame_size + 8 == stored, "a skippable frame has another length")
            else:
                frame_sizes.append((position, stored, raw))
            position += stored
        require(position == at, "the seek table's frames do not fill the file")
        self.frames = [[frame for frame in frame_sizes if offset <= frame[0] < offset + stored]
                       for offset, stored, *_ in self.chunks]
        require(sum(self.frames, []) == frame_sizes, "frames lie outside of the chunks")
        for (offset, stored, raw, *_, flags), frames in zip(self.chunks, self.frames):
            require(sum(frame[1] for frame in frames) == stored and sum(frame[2] for frame in frames) == raw,
                    "the frames of a chunk do not add up to it")
            if flags == 1 and self.kind == 1:
                require(all(frame[2] % self.sample_bytes == 0 for frame in frames), "a frame holds parts of samples")
            else:
                require(len(frames) == 1, "a chunk has several frames")

    def raw_chunk(self, index):
        """The samples' bytes of a chunk."""
        offset, stored, raw, first, samples, checksum, flags = self.chunks[index]
        require((self.kind == 2 or offset % 4096 == 0) and first == index * self.chunk_samples, "a chunk is not in its place")
        frame = self.data[offset:offset + stored]
        check_hash(frame, checksum, f"chunk {index}")
        require(self.kind == 2 or raw == samples * self.sample_bytes, "a chunk has another size")
        if flags == 0:
            require(frame[:13] == struct.pack("<IBQ", 0xFD2FB528, 0xE4, raw), "not a raw frame")
            require(stored == 13 + 3 * -(-raw // 131072) + raw + 4, "a raw frame has another size")
            return b"".join(self.raw_bytes(offset, p, min(131072, raw - p)) for p in range(0, raw, 131072))
        return unzstd(frame)

    def raw_bytes(self, offset, p, count):
        """`count` raw bytes of a raw chunk from p on, not over the end of a block, by the page's arithmetic."""
        at = offset + 13 + 3 * (p // 131072 + 1) + p
        return self.data[at:at + count]

    def matrix(self, which, of="ratings"):
        """All rows of one matrix of a shard of matrices: the ratings, their times or their ties."""
        from scipy.sparse import csr_matrix
        found = [np.zeros(1, np.int64)], [], [], [], []
        for index in range(self.chunk_count):
            block = RowBlock(self.raw_chunk(index), self.columns, self.has_times, self.has_repeats)
            require((block.first_row, block.row_count) == tuple(self.chunks[index][3:5]), "a block has other rows")
            require((block.value_type, block.scale, len(block.matrices)) == (self.value_type, self.scale, self.matrices),
                    "a block has another form")
            for whole, piece in zip(found, block.matrices[which]):
                whole.append(piece)
        lengths, columns, *numbers = map(np.concatenate, found)
        return csr_matrix((numbers[("ratings", "times", "ties").index(of)], columns, np.cumsum(lengths)), (self.sample_count, self.columns))

    def samples(self):
        """All samples, in the pack's layout."""
        planes_first = self.layout == "nchw"
        shape = (self.channels, self.height, self.width) if planes_first else (self.height, self.width, self.channels)
        samples = []
        for index in range(self.chunk_count):
            raw, filtered = self.raw_chunk(index), self.chunks[index][6] == 1
            for at in range(0, len(raw), self.sample_bytes):
                sample = raw[at:at + self.sample_bytes]
                if filtered and self.codec == "photo":
                    planes = undo_photo(sample, self.channels, self.height, self.width)
                    samples.append(planes if planes_first else planes.transpose(1, 2, 0))
                else:
                    samples.append(np.frombuffer(sample, np.uint8).reshape(shape))
        return np.stack(samples)


class Hdf5Part(Shard):
    """The index and the trailer behind the HDF5 end of a part of images: its attributes are named as a shard's."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        end = len(self.data) - 64
        magic, version, self.kind, hdf5_bytes, index_bytes, index_hash, self.hdf5_hash, checksum = struct.unpack_from(
            "<16sII5Q", self.data, end)
        require((magic, self.kind) == (b"chunkhit index\r\n", 1) and version in (2, 3), "no trailer")
        self.version = version
        check_hash(self.data[end:end + 56], checksum, "trailer")
        require(struct.unpack_from("<Q", self.data, 40) == (hdf5_bytes,), "the HDF5 file was changed")
        require(hdf5_bytes + index_bytes == end, "the index has another length")
        check_hash(self.data[hdf5_bytes:end], index_hash, "index")
        self.read_spec(hdf5_bytes)
        self.read_image_index(self.data[hdf5_bytes + 56:end], version == 3)
        self.check_hdf5_hash(hdf5_bytes)
        if version == 3:
            self.check_samples()

    def block_bytes(self):
        """Bytes of the samples that share a hash."""
        return self.sample_bytes if self.sample_bytes >= 1024 else -(-4096 // self.sample_bytes) * self.sample_bytes

    def check_samples(self):
        require(self.codec == "none", "hashes of samples beside a codec")
        for (offset, stored, *_), hashes in zip(self.chunks, self.sample_hashes):
            for at, expected in zip(range(0, stored, self.block_bytes()), hashes):
                block = self.data[offset + at:offset + min(stored, at + self.block_bytes())]
                check_hash(block, int(expected), "samples")

    def check_hdf5_hash(self, hdf5_bytes):
        hashed, at = b"", 0
        for offset, stored, _, _, _, checksum, _ in self.chunks:
            hashed += self.data[at:offset] + struct.pack("<Q", checksum)
            at = offset + stored
        check_hash(hashed + self.data[at:hdf5_bytes], self.hdf5_hash, "HDF5 file")
