"""Writes the pictures of this folder, and cases.json with the pixels that Pillow reads from them: python3
make_cases.py

There is every colour type and depth of PNG, plain and interlaced, and the usual kinds of JPEG, WebP and GIF. Each
picture has 13 x 9 pixels. cases.json has, as hexadecimal text, the result of
ImageOps.exif_transpose(Image.open(file)).convert("RGB"), which turns a photo by its EXIF orientation. It also has
sizes to which noise() is resized. For each filter it has the FNV-1a hash of the result of resize(size, filter), and
the result's first and last bytes. Pillow 12.1 or older is needed: later ones resize the height first if that is
faster, which rounds differently.
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
    """Returns rows of samples in PNG's layout: filter 0, and bits from the left."""
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
    """Returns EXIF data with an orientation of this value between other tags."""
    number = struct.pack(order + {SHORT: "H", LONG: "I"}[kind], value).ljust(4, b"\0")
    entries = [struct.pack(order + "HHI", tag, kind, count) + data for tag, kind, count, data in tags]
    entries.append(struct.pack(order + "HHI", 0x0112, kind, count) + number)
    entries.append(struct.pack(order + "HHII", 0x0213, SHORT, 1, 1))
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", at)
    return head.ljust(at, b"\0") + struct.pack(order + "H", len(entries)) + b"".join(entries) + b"\0" * 4


def write_turned():
    """Writes photos with each orientation, in both byte orders, and with EXIF data that are wrong or have other
    tags."""
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
        at = end if turned == 7 else header  # EXIF data may also stand after the pixels
        with open(os.path.join(HERE, f"png-turned-{turned}.png"), "wb") as file:
            file.write(plain[:at] + chunk(b"eXIf", tiff(turned, ">" if turned % 2 else "<")) + plain[at:])


def riff(kind, data):
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def webp(*chunks):
    return riff(b"RIFF", b"WEBP" + b"".join(chunks))


def u24(*values):
    return b"".join(struct.pack("<I", value)[:3] for value in values)


def write_webps():
    def path(name):
        return os.path.join(HERE, f"webp-{name}.webp")
    rgb = scene(WIDTH, HEIGHT)
    alpha = Image.new("L", rgb.size)
    alpha.putdata([(x * 40 + y * 9) % 256 for y in range(HEIGHT) for x in range(WIDTH)])
    rgba = rgb.copy()
    rgba.putalpha(alpha)
    rgb.save(path("lossy"), quality=70)
    rgba.save(path("lossy-alpha"), quality=70, exact=True)
    rgb.save(path("lossless"), lossless=True)
    rgba.save(path("lossless-alpha"), lossless=True, exact=True)
    rgb.quantize(7).convert("RGB").save(path("lossless-few"), lossless=True)
    scene(70, 50).save(path("70x50"), quality=40)
    rgb.save(path("moving"), save_all=True, append_images=[rgb.rotate(180), rgba], duration=40)
    for turned in range(1, 9):
        rgb.save(path(f"turned-{turned}"), quality=60, exif=b"Exif\0\0" * (turned % 2) + tiff(turned))
    # An animation whose first frame does not cover all of it.
    with open(path("lossy"), "rb") as file:
        still = file.read()[12:]
    frame = u24(4 // 2, 2 // 2, WIDTH - 1, HEIGHT - 1, 40) + b"\0" + still
    head = riff(b"VP8X", b"\2\0\0\0" + u24(WIDTH + 8, HEIGHT + 4))
    with open(path("moving-small"), "wb") as file:
        file.write(webp(head, riff(b"ANIM", b"\x10\x20\x30\xff\0\0"), riff(b"ANMF", frame)))


def gif_codes(indices, bits):
    """Returns a picture's data in which each code is one pixel: the table is cleared before codes get longer."""
    clear, codes = 1 << bits, []
    for i, index in enumerate(indices):
        codes += [clear] * (i % (clear // 2) == 0) + [index]
    text = "".join(reversed([format(code, f"0{bits + 1}b") for code in codes + [clear + 1]]))
    data = int(text, 2).to_bytes((len(text) + 7) // 8, "little")
    return b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255)) + b"\0"


def write_gif(name, screen=(WIDTH, HEIGHT), at=(0, 0), bits=4, colours=16, local=0, interlaced=False, transparent=None,
              version=b"GIF89a", frames=1, before=b""):
    rnd = random.Random(name)
    palette = bytes(rnd.randrange(256) for _ in range(3 * 256))
    rows = [[rnd.randrange(1 << bits) for _ in range(WIDTH)] for _ in range(HEIGHT)]
    if interlaced:
        rows = [rows[y] for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(first, HEIGHT, step)]
    size = {2: 0, 4: 1, 8: 2, 16: 3, 256: 7}
    out = version + struct.pack("<HHBBB", *screen, 0x80 | size[colours] if colours else 0, 3, 0)
    out += palette[:3 * colours] + before
    for frame in range(frames):
        if transparent is not None:
            out += b"\x21\xf9\4\1\0\0" + bytes([transparent]) + b"\0"
        out += b"\x2c" + struct.pack("<HHHHB", *at, WIDTH, HEIGHT, (0x80 | size[local] if local else 0) |
                                     0x40 * interlaced)
        out += palette[-3 * local:] if local else b""
        out += bytes([bits]) + gif_codes([index for row in rows for index in row][::1 - 2 * frame], bits)
    with open(os.path.join(HERE, f"gif-{name}.gif"), "wb") as file:
        file.write(out + b";")


def write_gifs():
    write_gif("16")
    write_gif("256", bits=8, colours=256, version=b"GIF87a")
    write_gif("2", bits=2, colours=4)
    write_gif("interlaced", interlaced=True)
    write_gif("local", local=16, colours=4)
    write_gif("local-alone", local=16, colours=0)
    write_gif("grey", colours=0)
    write_gif("short", colours=8)
    write_gif("transparent", transparent=5)
    write_gif("inside", screen=(20, 14), at=(3, 2))
    write_gif("inside-transparent", screen=(20, 14), at=(3, 2), transparent=5, interlaced=True)
    write_gif("outside", screen=(9, 4), at=(1, 2))
    write_gif("moving", frames=2)
    write_gif("comment", before=b"\x21\xfe\5hello\0\x21\xff\x0bNETSCAPE2.0\3\1\0\0\0")
    scene(70, 50).quantize(64).save(os.path.join(HERE, "gif-70x50.gif"))


def noise(width, height):
    """Returns a picture of noise, which the C suite makes too."""
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
    write_webps()
    write_gifs()
    files, resizes = [], []
    for name in sorted(os.listdir(HERE)):
        if name.endswith((".png", ".jpg", ".webp", ".gif")):
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
