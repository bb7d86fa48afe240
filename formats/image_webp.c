/* Decodes WebP by libwebp: a still picture, or the first of an animation.
 *
 * In: a mapped file. Out: RGB bytes, and the orientation in the file's EXIF. If the first frame of an animation does
 * not cover the whole picture, the rest is black, as in Pillow. */
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "base/error.h"
#include "formats/exif.h"
#include "formats/image_parts.h"

static fr_status refuse(const fr_map *file, const char *why) {
    return fr_fail(FR_INPUT, "%s: damaged WebP: %s", file->path, why);
}

/* Decodes a frame and stores it at its position in the picture. */
static fr_status decode_frame(fr_image *image, const WebPIterator *frame, const fr_map *file) {
    size_t x = (size_t)frame->x_offset, y = (size_t)frame->y_offset;
    size_t width = (size_t)frame->width, height = (size_t)frame->height, row = 3 * image->width;
    WebPDecoderConfig config;
    if (frame->x_offset < 0 || frame->y_offset < 0 || frame->width < 1 || frame->height < 1 || x > image->width ||
        y > image->height || width > image->width - x || height > image->height - y)
        return refuse(file, "a frame outside of the picture");
    if (!WebPInitDecoderConfig(&config)) return fr_fail(FR_MACHINE, "%s: another version of libwebp", file->path);
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = image->rgb + y * row + 3 * x;
    config.output.u.RGBA.stride = (int)row;
    config.output.u.RGBA.size = (height - 1) * row + 3 * width;
    switch (WebPDecode(frame->fragment.bytes, frame->fragment.size, &config)) {
    case VP8_STATUS_OK: return FR_OK;
    case VP8_STATUS_OUT_OF_MEMORY: return fr_fail_memory(file->path, height * row);
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return refuse(file, "the file ends too early");
    default: return refuse(file, "its picture can't be decoded");
    }
}

/* Gives the orientation. Some programs put the six bytes "Exif", 0, 0 of JPEG before the EXIF data; Pillow reads such
 * files too. */
static int find_orientation(const WebPDemuxer *demuxer) {
    static const char name[6] = "Exif";
    WebPChunkIterator chunk;
    int orientation = 1;
    if (!WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk)) return 1;
    const uint8_t *bytes = chunk.chunk.bytes;
    size_t size = chunk.chunk.size;
    bool named = size >= sizeof name && memcmp(bytes, name, sizeof name) == 0;
    orientation =
        named ? fr_exif_orientation(bytes + sizeof name, size - sizeof name) : fr_exif_orientation(bytes, size);
    WebPDemuxReleaseChunkIterator(&chunk);
    return orientation;
}

static fr_status read_picture(fr_image *image, const WebPDemuxer *demuxer, const fr_map *file, int *orientation) {
    WebPIterator frame;
    FR_TRY(fr_image_take(image, WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH),
                         WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT), file->path));
    if (!WebPDemuxGetFrame(demuxer, 1, &frame)) return refuse(file, "no frame");
    if ((size_t)frame.width < image->width || (size_t)frame.height < image->height)
        memset(image->rgb, 0, 3 * image->width * image->height);
    fr_status status = decode_frame(image, &frame, file);
    WebPDemuxReleaseIterator(&frame);
    *orientation = find_orientation(demuxer);
    return status;
}

fr_status fr_webp_decode(fr_image *image, const fr_map *file, int *orientation) {
    const WebPData data = {file->bytes, file->size};
    WebPDemuxer *demuxer = WebPDemux(&data);
    if (!demuxer) return refuse(file, "chunks that are cut or don't belong together");
    fr_status status = read_picture(image, demuxer, file, orientation);
    WebPDemuxDelete(demuxer);
    return status;
}
