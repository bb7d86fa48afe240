/* Decodes PNG by libpng: every colour type becomes the same RGB as in Pillow.
 *
 * In: a mapped file. Out: RGB bytes, and the orientation in its EXIF. */
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/exif.h"
#include "formats/image_parts.h"

#define CHUNK_MAX ((size_t)8 << 20) /* bytes of the largest unpacked profile or text, which are both ignored */

/* Holds the state of libpng's callbacks. The state is a variable of read_picture's caller, because variables of
 * read_picture itself are not reliable after a longjmp into it. */
typedef struct reader {
    fr_image *image;
    int *orientation;
    const fr_map *file;
    size_t at;
    fr_status status;
    bool lost; /* memory ran out */
    png_structp png;
    png_infop info;
} reader;

static void fail(png_structp png, png_const_charp message) {
    reader *r = png_get_error_ptr(png);
    if (r->status == FR_OK && r->lost) r->status = fr_fail_memory(r->file->path, r->file->size);
    if (r->status == FR_OK) r->status = fr_fail(FR_INPUT, "%s: damaged PNG: %s", r->file->path, message);
    longjmp(png_jmpbuf(png), 1);
}

static png_voidp take(png_structp png, png_alloc_size_t size) {
    reader *r = png_get_mem_ptr(png);
    void *memory = malloc(size);
    r->lost |= !memory;
    return memory;
}

static void give_back(png_structp png, png_voidp memory) {
    (void)png;
    free(memory);
}

static void ignore(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static void read_bytes(png_structp png, png_bytep to, size_t count) {
    reader *r = png_get_io_ptr(png);
    if (count > r->file->size - r->at) png_error(png, "the file ends too early");
    memcpy(to, r->file->bytes + r->at, count);
    r->at += count;
}

/* Asks libpng for RGB. Returns false for 16-bit grey, which is left as it is: Pillow clamps it, while libpng would take
 * its high byte. */
static bool ask_for_rgb(const reader *r) {
    int type = png_get_color_type(r->png, r->info), depth = png_get_bit_depth(r->png, r->info);
    if (type == PNG_COLOR_TYPE_GRAY && depth == 16) return false;
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r->png);
    if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(r->png);
    if (!(type & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(r->png);
    png_set_strip_16(r->png);
    png_set_strip_alpha(r->png);
    return true;
}

/* Turns a row of 16-bit grey, high byte first, into RGB in place. Pixels are converted from the last to the first, so
 * that only pixels are overwritten that were already read. */
static void spread_grey(uint8_t *row, size_t width) {
    for (size_t x = width; x-- > 0;) memset(row + 3 * x, row[2 * x] ? 255 : row[2 * x + 1], 3);
}

/* Gives the orientation. Call this function after all chunks were read, because the EXIF chunk may come before or after
 * the pixels. */
static int find_orientation(const reader *r) {
    png_uint_32 size = 0;
    png_bytep bytes = NULL;
    bool there = png_get_eXIf_1(r->png, r->info, &size, &bytes) && bytes;
    return there ? fr_exif_orientation(bytes, size) : 1;
}

/* Decodes the file. After any failure, libpng's callback jumps to the setjmp. */
static fr_status read_picture(reader *r) {
    if (setjmp(png_jmpbuf(r->png))) return r->status;
    png_set_read_fn(r->png, r, read_bytes);
    png_set_user_limits(r->png, FR_IMAGE_SIDE_MAX, FR_IMAGE_SIDE_MAX);
    png_set_chunk_malloc_max(r->png, CHUNK_MAX);
    png_read_info(r->png, r->info);
    r->status = fr_image_take(r->image, png_get_image_width(r->png, r->info), png_get_image_height(r->png, r->info),
                              r->file->path);
    if (r->status != FR_OK) return r->status;
    bool rgb = ask_for_rgb(r);
    size_t width = r->image->width, height = r->image->height;
    int passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (png_get_rowbytes(r->png, r->info) != width * (rgb ? 3 : 2)) png_error(r->png, "a row of unexpected size");
    for (; passes; passes--)
        for (size_t y = 0; y < height; y++) png_read_row(r->png, r->image->rgb + y * width * 3, NULL);
    png_read_end(r->png, r->info);
    *r->orientation = find_orientation(r);
    for (size_t y = 0; !rgb && y < height; y++) spread_grey(r->image->rgb + y * width * 3, width);
    return FR_OK;
}

fr_status fr_png_decode(fr_image *image, const fr_map *file, int *orientation) {
    reader r = {.image = image, .orientation = orientation, .file = file};
    r.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &r, fail, ignore, &r, take, give_back);
    if (r.png) r.info = png_create_info_struct(r.png);
    fr_status status = r.info ? read_picture(&r) : fr_fail_memory("a PNG reader", sizeof r);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return status;
}
