/* Decodes GIF by giflib: the first picture of a file.
 *
 * In: a mapped file. Out: RGB bytes. If the first picture is smaller than the screen, the rest of the screen has the
 * transparent colour or, if there is none, the palette's first colour. If the first picture is larger than the screen,
 * the screen is extended. Pillow treats such pictures in the same ways. */
#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

#include "base/error.h"
#include "formats/image_parts.h"

enum { COLOURS = 256 };

typedef struct reader {
    GifFileType *gif;
    const fr_map *file;
    size_t at;
    int transparent; /* the index of the first picture's transparent colour; -1: none */
    uint8_t palette[COLOURS][3];
} reader;

static fr_status refuse(const fr_map *file, int code) {
    const char *why = code == D_GIF_ERR_EOF_TOO_SOON || code == D_GIF_ERR_READ_FAILED ? "the file ends too early"
                                                                                      : GifErrorString(code);
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM) return fr_fail_memory(file->path, file->size);
    return fr_fail(FR_INPUT, "%s: damaged GIF: %s", file->path, why ? why : "unknown");
}

static int read_bytes(GifFileType *gif, GifByteType *to, int wanted) {
    reader *r = gif->UserData;
    size_t left = r->file->size - r->at, count = wanted < 0 ? 0 : (size_t)wanted;
    if (count > left) count = left;
    memcpy(to, r->file->bytes + r->at, count);
    r->at += count;
    return (int)count;
}

/* Reads an extension. The graphics extension gives the transparent colour of the picture that follows it. */
static fr_status read_extension(reader *r) {
    GifByteType *block;
    GraphicsControlBlock control;
    int code;
    if (DGifGetExtension(r->gif, &code, &block) == GIF_ERROR) return refuse(r->file, r->gif->Error);
    while (block) {
        if (code == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
            r->transparent = control.TransparentColor;
        if (DGifGetExtensionNext(r->gif, &block) == GIF_ERROR) return refuse(r->file, r->gif->Error);
    }
    return FR_OK;
}

/* Reads everything before the first picture, and the size of that picture. */
static fr_status find_picture(reader *r) {
    GifRecordType record;
    for (;;) {
        if (DGifGetRecordType(r->gif, &record) == GIF_ERROR) return refuse(r->file, r->gif->Error);
        if (record == EXTENSION_RECORD_TYPE)
            FR_TRY(read_extension(r));
        else if (record == IMAGE_DESC_RECORD_TYPE)
            return DGifGetImageDesc(r->gif) == GIF_ERROR ? refuse(r->file, r->gif->Error) : FR_OK;
        else
            return fr_fail(FR_INPUT, "%s: damaged GIF: no picture", r->file->path);
    }
}

/* Fills the palette. An index beyond the file's palette is black. If the file has no palette, the indices are shades of
 * grey. Pillow does the same. */
static void read_palette(reader *r) {
    const ColorMapObject *map = r->gif->Image.ColorMap ? r->gif->Image.ColorMap : r->gif->SColorMap;
    for (int i = 0; i < COLOURS; i++) {
        if (map && i < map->ColorCount) {
            const GifColorType *colour = &map->Colors[i];
            memcpy(r->palette[i], (const uint8_t[]){colour->Red, colour->Green, colour->Blue}, 3);
        } else {
            memset(r->palette[i], map ? 0 : i, 3);
        }
    }
}

/* Decodes the rows of the picture and stores each at its position. An interlaced picture stores every 8th row first,
 * and then the rows between them in three passes. */
static fr_status read_rows(reader *r, fr_image *image, uint8_t *indices) {
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    const GifImageDesc *desc = &r->gif->Image;
    int passes = desc->Interlace ? 4 : 1;
    for (int pass = 0; pass < passes; pass++)
        for (int y = desc->Interlace ? first[pass] : 0; y < desc->Height; y += desc->Interlace ? step[pass] : 1) {
            if (DGifGetLine(r->gif, indices, desc->Width) == GIF_ERROR) return refuse(r->file, r->gif->Error);
            uint8_t *rgb = image->rgb + 3 * ((size_t)(desc->Top + y) * image->width + (size_t)desc->Left);
            for (int x = 0; x < desc->Width; x++, rgb += 3) memcpy(rgb, r->palette[indices[x]], 3);
        }
    return FR_OK;
}

static fr_status read_picture(reader *r, fr_image *image) {
    FR_TRY(find_picture(r));
    const GifImageDesc *desc = &r->gif->Image;
    int right = desc->Left + desc->Width, bottom = desc->Top + desc->Height;
    size_t width = (size_t)(right > r->gif->SWidth ? right : r->gif->SWidth);
    size_t height = (size_t)(bottom > r->gif->SHeight ? bottom : r->gif->SHeight);
    if (desc->Left < 0 || desc->Top < 0 || desc->Width < 1 || desc->Height < 1)
        return fr_fail(FR_INPUT, "%s: damaged GIF: a picture without pixels", r->file->path);
    FR_TRY(fr_image_take(image, width, height, r->file->path));
    read_palette(r);
    const uint8_t *ground = r->palette[r->transparent >= 0 ? r->transparent % COLOURS : 0];
    for (size_t i = 0; i < width * height; i++) memcpy(image->rgb + 3 * i, ground, 3);
    uint8_t *indices = malloc((size_t)desc->Width);
    fr_status status = indices ? read_rows(r, image, indices) : fr_fail_memory("a row of a picture", width);
    free(indices);
    return status;
}

fr_status fr_gif_decode(fr_image *image, const fr_map *file) {
    reader r = {.file = file, .transparent = NO_TRANSPARENT_COLOR};
    int code = 0;
    r.gif = DGifOpen(&r, read_bytes, &code);
    if (!r.gif) return refuse(file, code);
    fr_status status = read_picture(&r, image);
    DGifCloseFile(r.gif, &code);
    return status;
}
