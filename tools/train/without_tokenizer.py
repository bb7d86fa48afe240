"""Leaves the tokenizer out of a drafter's GGUF file.

`forerun quantize` writes the target's tokenizer into a drafter's file, because llama.cpp wants one there. forerun
takes it from the target. A large vocabulary takes 6 MB, which is a third of a small drafter.

    without_tokenizer.py DRAFTER.gguf OUT.gguf
"""
import sys

import gguf


def copy(source, path):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith(("GGUF.", "tokenizer.")) or name == "general.architecture":
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(name, field.contents())
        else:
            writer.add_key_value(name, field.contents(), field.types[0])
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: without_tokenizer.py DRAFTER.gguf OUT.gguf")
    copy(*sys.argv[1:])
