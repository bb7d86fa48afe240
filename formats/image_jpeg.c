/* Decodes JPEG by libjpeg-turbo: grey, colour and CMYK become the same RGB as in Pillow.
 *
 * In: a mapped file. Out: RGB bytes, and the orientation in the file's EXIF. Four components are taken to be CMYK,
 * stored inverted as Adobe does, because nearly all files with four components are of that kind. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/error.h"
#include "formats/exif.h"
#include "formats/image_parts.h"

/* The largest number of scans. A scan of a progressive file may be a few bytes long, but decoding it walks over the
 * whole picture, so the number is limited. */
#define SCANS_MAX 100

#define APP1 (JPEG_APP0 + 1)

/* Holds the state of libjpeg's callbacks. The state is a variable of read_picture's caller, because variables of
 * read_picture itself are not reliable after a longjmp into it. */
typedef struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct jpeg_source_mgr source;
    jmp_buf back;
    fr_image *image;
    int *orientation;
    const fr_map *file;
    uint8_t *cmyk; /* one row, used if there are four components */
    fr_status status;
} reader;

static void fail(j_common_ptr jpeg) {
    reader *r = jpeg->client_data;
    char message[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, message);
    bool lost = jpeg->err->msg_code == JERR_OUT_OF_MEMORY;
    r->status = lost ? fr_fail_memory(r->file->path, r->file->size)
                     : fr_fail(FR_INPUT, "%s: damaged JPEG: %s", r->file->path, message);
    longjmp(r->back, 1);
}

static void fail_with(reader *r, const char *message) {
    r->status = fr_fail(FR_INPUT, "%s: damaged JPEG: %s", r->file->path, message);
    longjmp(r->back, 1);
}

static void ignore(j_common_ptr jpeg) {
    (void)jpeg;
}

static void ignore_level(j_common_ptr jpeg, int level) {
    (void)jpeg;
    (void)level;
}

static void start_source(j_decompress_ptr jpeg) {
    (void)jpeg;
}

static boolean end_of_file(j_decompress_ptr jpeg) {
    fail_with(jpeg->client_data, "the file ends too early");
    return FALSE;
}

static void skip(j_decompress_ptr jpeg, long count) {
    if (count <= 0) return;
    if ((size_t)count > jpeg->src->bytes_in_buffer) end_of_file(jpeg);
    jpeg->src->next_input_byte += count;
    jpeg->src->bytes_in_buffer -= (size_t)count;
}

static void count_scans(j_common_ptr jpeg) {
    reader *r = jpeg->client_data;
    if (r->jpeg.input_scan_number > SCANS_MAX) fail_with(r, "more than 100 scans");
}

static void connect(reader *r) {
    r->source = (struct jpeg_source_mgr){.next_input_byte = r->file->bytes,
                                         .bytes_in_buffer = r->file->size,
                                         .init_source = start_source,
                                         .fill_input_buffer = end_of_file,
                                         .skip_input_data = skip,
                                         .resync_to_restart = jpeg_resync_to_restart,
                                         .term_source = start_source};
    r->progress.progress_monitor = count_scans;
    r->jpeg.src = &r->source;
    r->jpeg.progress = &r->progress;
}

/* Gives x * y / 255, rounded to the nearest. */
static unsigned product(unsigned x, unsigned y) {
    unsigned t = x * y + 128;
    return (t + (t >> 8)) >> 8;
}

/* Converts a row of CMYK pixels, which are stored inverted: as 255 - c, 255 - m, 255 - y, 255 - k. The black ink lets
 * the share (255 - k) / 255 of the red, green and blue light through. Of that light, the cyan ink lets the share (255 -
 * c) / 255 of the red through; magenta does the same to the green, and yellow to the blue. */
static void rgb_of_cmyk(uint8_t *rgb, const uint8_t *cmyk, size_t width) {
    for (size_t x = 0; x < width; x++, rgb += 3, cmyk += 4)
        for (int i = 0; i < 3; i++) rgb[i] = (uint8_t)(cmyk[3] - product(255u - cmyk[i], cmyk[3]));
}

static void choose_colours(reader *r) {
    int components = r->jpeg.num_components;
    if (components != 1 && components != 3 && components != 4) fail_with(r, "neither 1, 3 nor 4 components");
    r->jpeg.out_color_space = components == 4 ? JCS_CMYK : JCS_RGB;
}

/* Gives the orientation in the first segment that has EXIF. Other APP1 segments hold XMP or a maker's own data. */
static int find_orientation(const reader *r) {
    static const char name[6] = "Exif";
    for (jpeg_saved_marker_ptr m = r->jpeg.marker_list; m; m = m->next)
        if (m->marker == APP1 && m->data_length >= sizeof name && memcmp(m->data, name, sizeof name) == 0)
            return fr_exif_orientation(m->data + sizeof name, m->data_length - sizeof name);
    return 1;
}

/* Decodes the file. After any failure, libjpeg's callback jumps to the setjmp. */
static fr_status read_picture(reader *r) {
    if (setjmp(r->back)) return r->status;
    jpeg_create_decompress(&r->jpeg);
    connect(r);
    jpeg_save_markers(&r->jpeg, APP1, 0xffff);
    jpeg_read_header(&r->jpeg, TRUE);
    *r->orientation = find_orientation(r);
    choose_colours(r);
    r->status = fr_image_take(r->image, r->jpeg.image_width, r->jpeg.image_height, r->file->path);
    if (r->status != FR_OK) return r->status;
    size_t width = r->image->width;
    if (r->jpeg.out_color_space == JCS_CMYK && !(r->cmyk = malloc(width * 4)))
        return fr_fail_memory("a row of a picture", width * 4);
    jpeg_start_decompress(&r->jpeg);
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        uint8_t *rgb = r->image->rgb + r->jpeg.output_scanline * width * 3, *row = r->cmyk ? r->cmyk : rgb;
        jpeg_read_scanlines(&r->jpeg, &row, 1);
        if (r->cmyk) rgb_of_cmyk(rgb, r->cmyk, width);
    }
    jpeg_finish_decompress(&r->jpeg);
    return FR_OK;
}

fr_status fr_jpeg_decode(fr_image *image, const fr_map *file, int *orientation) {
    reader r = {.image = image, .orientation = orientation, .file = file};
    r.jpeg.err = jpeg_std_error(&r.errors);
    r.errors.error_exit = fail;
    r.errors.output_message = ignore;
    r.errors.emit_message = ignore_level;
    r.jpeg.client_data = &r;
    fr_status status = read_picture(&r);
    jpeg_destroy_decompress(&r.jpeg);
    free(r.cmyk);
    return status;
}
