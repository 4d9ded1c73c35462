"""Tables for the Arrow C stream interface, written from its specification by ctypes: no library is needed."""
import ctypes

import numpy as np


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


class ArrowArrayStream(ctypes.Structure):
    pass


def release_of(kind):
    return ctypes.CFUNCTYPE(None, ctypes.POINTER(kind))


ArrowSchema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                        ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
                        ("dictionary", ctypes.POINTER(ArrowSchema)), ("release", release_of(ArrowSchema)), ("private", ctypes.c_void_p)]
ArrowArray._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                       ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                       ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))), ("dictionary", ctypes.POINTER(ArrowArray)),
                       ("release", release_of(ArrowArray)), ("private", ctypes.c_void_p)]
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowArrayStream), ctypes.POINTER(ArrowSchema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowArrayStream), ctypes.POINTER(ArrowArray))
GET_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ArrowArrayStream))
ArrowArrayStream._fields_ = [("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_last_error", GET_ERROR),
                             ("release", release_of(ArrowArrayStream)), ("private", ctypes.c_void_p)]

ALIVE = []  # tables, whose structs may be released late

DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))


class Column:
    """A column of a batch: `length` rows behind `offset`, and its buffers, the first of which is the bits of rows that are not null."""

    def __init__(self, form, buffers, length, offset=0, null_count=0, dictionary=None):
        self.form, self.length, self.offset, self.null_count, self.dictionary = form, length, offset, null_count, dictionary
        self.buffers = [None if each is None else np.frombuffer(bytes(each) or b"\0", np.uint8) for each in buffers]


def bits(values):
    return np.packbits(np.asarray(values, bool), bitorder="little").tobytes()


def validity(values, nulls):
    return bits([at not in nulls for at in range(len(values))]) if nulls else None


NUMBERS = dict(zip(("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"), "cCsSiIlLfg"))


def numbers(values, dtype="int64", form=None, offset=0, nulls=()):
    """A column of values[offset:]."""
    array = np.asarray(values, dtype)
    return Column(form or NUMBERS[dtype], [validity(array, nulls), array.tobytes()], len(array) - offset, offset, -1 if nulls else 0)


def booleans(values, offset=0):
    return Column("b", [None, bits(values)], len(values) - offset, offset)


def texts(values, form="u", offset=0, nulls=()):
    """Texts (u), large ones (U) or views (vu), of str or bytes."""
    values = [each.encode() if isinstance(each, str) else each for each in values]
    known, length, count = validity(values, nulls), len(values) - offset, -1 if nulls else 0
    if form != "vu":
        ends = np.cumsum([0, *map(len, values)]).astype(np.int32 if form == "u" else np.int64)
        return Column(form, [known, ends.tobytes(), b"".join(values)], length, offset, count)
    views, held = b"", [b"", b""]  # long texts in two buffers by turns
    for at, each in enumerate(values):
        size = len(each).to_bytes(4, "little")
        if len(each) <= 12:
            views += size + each.ljust(12, b"\0")
        else:
            views += size + each[:4] + (at % 2).to_bytes(4, "little") + len(held[at % 2]).to_bytes(4, "little")
            held[at % 2] += each
    return Column(form, [known, views, *held, np.array([len(each) for each in held], np.int64).tobytes()], length, offset, count)


def words(indices, dictionary, dtype="int32", offset=0, nulls=()):
    column = numbers(indices, dtype, offset=offset, nulls=nulls)
    column.dictionary = dictionary
    return column


class Table:
    """Gives batches, dicts of columns, once, and counts what it gave and what was released. `fails_at` is the index of the
    batch that it fails to make."""

    def __init__(self, batches, offset=0, fails_at=None):
        self.batches, self.offset, self.fails_at = batches, offset, fails_at
        self.given = {"schema": 0, "array": 0, "stream": 0}
        self.released = dict(self.given)
        ALIVE.append(self)
        self._kept, self._next, self._message = [], 0, ctypes.create_string_buffer(b"the cable is cut")

    def __arrow_c_stream__(self, requested_schema=None):
        stream = ArrowArrayStream(GET_SCHEMA(self._get_schema), GET_NEXT(self._get_next),
                                  GET_ERROR(lambda _: ctypes.addressof(self._message)), self._release("stream", ArrowArrayStream))
        self.given["stream"] += 1
        return self._capsule(stream, b"arrow_array_stream")

    def _capsule(self, struct, name):
        def destroy(_):
            if struct.release:
                struct.release(struct)

        destructor = DESTRUCTOR(destroy)
        self._kept += [struct, destructor]
        return capsule_new(ctypes.addressof(struct), name, ctypes.cast(destructor, ctypes.c_void_p))

    def _release(self, name, kind):
        def release(pointer):
            self.released[name] += name != "child"
            pointer.contents.release = release_of(kind)()

        callback = release_of(kind)(release)
        self._kept.append(callback)
        return callback

    def _get_schema(self, _, out):
        first = self.batches[0]
        self._fill_schema(out.contents, b"+s", b"", [self._schema(name, column) for name, column in first.items()], "schema")
        self.given["schema"] += 1
        return 0

    def _fill_schema(self, schema, form, name, children, counted="child", dictionary=None):
        pointers = (ctypes.POINTER(ArrowSchema) * len(children))(*map(ctypes.pointer, children))
        self._kept += [pointers, children, dictionary]
        schema.format, schema.name, schema.n_children, schema.children = form, name, len(children), pointers
        schema.dictionary = ctypes.pointer(dictionary) if dictionary else None
        schema.release = self._release(counted, ArrowSchema)
        return schema

    def _schema(self, name, column):
        dictionary = self._schema("", column.dictionary) if column.dictionary else None
        return self._fill_schema(ArrowSchema(), column.form.encode(), name.encode(), [], dictionary=dictionary)

    def _get_next(self, _, out):
        if self._next == self.fails_at:
            return 5
        if self._next == len(self.batches):
            out.contents.release = release_of(ArrowArray)()
            return 0
        batch = self.batches[self._next]
        self._next += 1
        children = [self._array(column) for column in batch.values()]
        pointers = (ctypes.POINTER(ArrowArray) * len(children))(*map(ctypes.pointer, children))
        self._kept += [children, pointers]
        length = next(iter(batch.values())).length - self.offset
        self._fill_array(out.contents, [None], length, self.offset, 0, "array")
        out.contents.n_children, out.contents.children = len(children), pointers
        self.given["array"] += 1
        return 0

    def _fill_array(self, array, buffers, length, offset, null_count, counted="child"):
        addresses = (ctypes.c_void_p * len(buffers))(*(None if each is None else each.ctypes.data for each in buffers))
        self._kept += [buffers, addresses]
        array.length, array.null_count, array.offset, array.n_buffers = length, null_count, offset, len(buffers)
        array.buffers, array.release = addresses, self._release(counted, ArrowArray)
        return array

    def _array(self, column):
        array = self._fill_array(ArrowArray(), column.buffers, column.length, column.offset, column.null_count)
        if column.dictionary:
            words = self._array(column.dictionary)
            self._kept.append(words)
            array.dictionary = ctypes.pointer(words)
        return array


class Batch(Table):
    """The same of one batch by the C array interface."""

    def __getattribute__(self, name):
        if name == "__arrow_c_stream__":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def __arrow_c_array__(self, requested_schema=None):
        schema, array = ArrowSchema(), ArrowArray()
        self._get_schema(None, ctypes.pointer(schema))
        self._get_next(None, ctypes.pointer(array))
        return self._capsule(schema, b"arrow_schema"), self._capsule(array, b"arrow_array")
