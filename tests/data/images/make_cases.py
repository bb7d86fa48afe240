"""Writes the pictures of this folder, and cases.json with what Pillow makes of them: python3 make_cases.py

Every colour type and depth of PNG, plain and interlaced, and the kinds of JPEG that are met, 13 x 9 pixels each; what
ImageOps.exif_transpose(Image.open(file)).convert("RGB") gives, which turns a photo as its EXIF orientation says, is in
cases.json as hexadecimal text. Then sizes to resize noise() to, with the
FNV-1a hash of what resize(size, filter) gives with each filter, and its first and last bytes. Pillow 12.1 or older: later ones resize
the height first where that is faster, which rounds otherwise.
"""
import json
import os
import random
import struct
import warnings
import zlib

import PIL
from PIL import Image, ImageOps

assert [int(part) for part in PIL.__version__.split(".")[:2]] <= [12, 1], PIL.__version__

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT = 13, 9
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
RESIZES = [
    (130, 100, 140, 112), (130, 100, 130, 100), (130, 100, 130, 61), (130, 100, 77, 100), (130, 100, 28, 28),
    (50, 40, 224, 168), (1, 1, 5, 7), (1, 9, 4, 3), (300, 2, 28, 28), (2, 300, 28, 28), (700, 500, 3, 2),
    (3, 2, 700, 500), (64, 64, 63, 65), (640, 480, 644, 476), (997, 13, 1, 1), (5, 5, 1, 200),
]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed_rows(pixels, bits):
    """Rows of samples as PNG lays them: filter 0, bits from the left."""
    out = b""
    for row in pixels:
        text = "".join(format(sample, f"0{bits}b") for pixel in row for sample in pixel)
        text += "0" * (-len(text) % 8)
        out += b"\0" + bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))
    return out


def write_png(name, bits, colour, interlaced=False, palette=None, transparency=None, limit=None):
    rnd = random.Random(name)
    top = (limit or 1 << bits) - 1
    pixels = [[[rnd.choice([0, 1, top, rnd.randint(0, top)]) for _ in range(SAMPLES[colour])] for _ in range(WIDTH)]
              for _ in range(HEIGHT)]
    if interlaced:
        data = b"".join(packed_rows([row[x::dx] for row in pixels[y::dy]], bits) for x, y, dx, dy in ADAM7)
    else:
        data = packed_rows(pixels, bits)
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, colour, 0, 0, interlaced))
    if palette:
        out += chunk(b"PLTE", palette)
    if transparency:
        out += chunk(b"tRNS", transparency)
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(out + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def write_pngs():
    palette = bytes(random.Random(7).randrange(256) for _ in range(3 * 256))
    for colour, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for bits in depths:
            colours = palette[:3 << min(bits, 8)] if colour == 3 else None
            for interlaced in (False, True):
                write_png(f"png-{colour}-{bits}{'-i' * interlaced}.png", bits, colour, interlaced, colours)
    write_png("png-3-8-alpha.png", 8, 3, palette=palette, transparency=bytes([0, 128, 255, 7]))
    write_png("png-3-8-hole.png", 8, 3, palette=palette, transparency=bytes([255, 0, 255]))
    write_png("png-3-8-short.png", 8, 3, palette=palette[:30], limit=16)
    write_png("png-0-8-key.png", 8, 0, transparency=struct.pack(">H", 1))
    write_png("png-0-16-key.png", 16, 0, transparency=struct.pack(">H", 1))
    write_png("png-2-8-key.png", 8, 2, transparency=struct.pack(">HHH", 0, 1, 0))


def scene(width, height):
    image = Image.new("RGB", (width, height))
    image.putdata([((x * 19 + y) % 256, (y * 27 + x * x) % 256, 255 if (x // 3 + y // 4) % 2 else 40)
                   for y in range(height) for x in range(width)])
    return image


def write_jpegs():
    rgb = scene(WIDTH, HEIGHT)
    for name, sampling in {"444": 0, "422": 1, "420": 2}.items():
        rgb.save(os.path.join(HERE, f"jpeg-{name}.jpg"), quality=80, subsampling=sampling)
    rgb.save(os.path.join(HERE, "jpeg-progressive.jpg"), quality=60, progressive=True)
    rgb.save(os.path.join(HERE, "jpeg-restarts.jpg"), quality=60, restart_marker_blocks=1)
    rgb.convert("L").save(os.path.join(HERE, "jpeg-grey.jpg"), quality=80)
    rgb.convert("CMYK").save(os.path.join(HERE, "jpeg-cmyk.jpg"), quality=90)
    rgb.save(os.path.join(HERE, "jpeg-rgb.jpg"), quality=80, keep_rgb=True)
    scene(70, 50).save(os.path.join(HERE, "jpeg-70x50.jpg"), quality=50)


SHORT, LONG = 3, 4


def tiff(value, order="<", kind=SHORT, count=1, tags=((0x010f, 2, 4, b"Cam\0"),), at=8):
    """EXIF with an orientation of that value between other tags."""
    number = struct.pack(order + {SHORT: "H", LONG: "I"}[kind], value).ljust(4, b"\0")
    entries = [struct.pack(order + "HHI", tag, kind, count) + data for tag, kind, count, data in tags]
    entries.append(struct.pack(order + "HHI", 0x0112, kind, count) + number)
    entries.append(struct.pack(order + "HHII", 0x0213, SHORT, 1, 1))
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", at)
    return head.ljust(at, b"\0") + struct.pack(order + "H", len(entries)) + b"".join(entries) + b"\0" * 4


def write_turned():
    """Photos that lie as the camera was held: each orientation, both byte orders, and what EXIF says otherwise."""
    rgb, name = scene(WIDTH, HEIGHT), "jpeg-turned-{}.jpg"
    odd = {"long": tiff(6, kind=LONG), "big-endian": tiff(6, ">"), "far": tiff(8, at=300), "nine": tiff(9),
           "zero": tiff(0), "two": tiff(6, count=2), "again": tiff(6, tags=((0x0112, SHORT, 1, b"\3\0\0\0"),)),
           "cut": tiff(6)[:-17], "short": tiff(6)[:-20], "header": tiff(6)[:7], "order": b"IM" + tiff(6)[2:],
           "pointed": tiff(50, kind=LONG, count=2) + struct.pack("<II", 8, 1),
           "astray": tiff(5000, kind=LONG, count=2),
           "beyond": b"II*\0\xff\xff\xff\xff" + tiff(6)[8:]}
    for turned in range(1, 9):
        rgb.save(os.path.join(HERE, name.format(turned)), quality=80, exif=b"Exif\0\0" + tiff(turned))
    for what, exif in odd.items():
        rgb.save(os.path.join(HERE, name.format(what)), quality=80, exif=b"Exif\0\0" + exif)
    with open(os.path.join(HERE, "png-2-8.png"), "rb") as file:
        plain = file.read()
    header, end = plain.index(b"IDAT") - 4, len(plain) - 12
    for turned in range(1, 9):
        at = end if turned == 7 else header  # behind the pixels, where it may stand too
        with open(os.path.join(HERE, f"png-turned-{turned}.png"), "wb") as file:
            file.write(plain[:at] + chunk(b"eXIf", tiff(turned, ">" if turned % 2 else "<")) + plain[at:])


def noise(width, height):
    """The C suite makes the same."""
    state, out = 12345, bytearray()
    for _ in range(width * height * 3):
        state = (state * 1103515245 + 12345) % (1 << 31)
        value = state >> 16 & 0x1ff
        out.append(value if value < 256 else 255 * (value & 1))
    return Image.frombytes("RGB", (width, height), bytes(out))


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return value


def main():
    warnings.simplefilter("ignore")
    write_pngs()
    write_jpegs()
    write_turned()
    files, resizes = [], []
    for name in sorted(os.listdir(HERE)):
        if name.endswith((".png", ".jpg")):
            image = ImageOps.exif_transpose(Image.open(os.path.join(HERE, name))).convert("RGB")
            files.append({"file": name, "width": image.width, "height": image.height, "rgb": image.tobytes().hex()})
    for width, height, to_width, to_height in RESIZES:
        for resample in (Image.LANCZOS, Image.BILINEAR, Image.BICUBIC):
            data = noise(width, height).resize((to_width, to_height), resample).tobytes()
            resizes.append({"resample": int(resample), "from": [width, height], "to": [to_width, to_height],
                            "fnv": format(fnv(data), "016x"), "head": data[:24].hex(), "tail": data[-24:].hex()})
    with open(os.path.join(HERE, "cases.json"), "w") as file:
        json.dump({"files": files, "resizes": resizes}, file, indent=0)
        file.write("\n")


main()
