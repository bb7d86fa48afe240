/* Resizes pictures by Lanczos, bilinear and bicubic filters, in integers: see image_resize.h. */
#include "src/engine/vision/image_resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { CHANNELS = 3, WEIGHT_BITS = 22 };

/* The weights for one side of a picture. New pixel i is a sum over j < count[i]: weights[i * taps + j] times old pixel
 * first[i] + j. */
typedef struct taps {
    size_t taps;
    size_t *first, *count;
    int32_t *weights;
} taps;

/* Computes the sine of pi * x for small x. The C libraries' sines differ in their last bit; this sum is the same
 * everywhere. */
static double sine_of_pi_times(double x) {
    double whole = rint(x), angle = 3.14159265358979323846 * (x - whole), square = angle * angle, sum = 0.0;
    for (int k = 23; k >= 3; k -= 2) sum = (1.0 + sum) * -square / (k * (k - 1));
    sum = (1.0 + sum) * angle;
    return fmod(whole, 2.0) == 0.0 ? sum : -sum;
}

/* Gives the weight of an old pixel at distance x from the new pixel's centre. */
static double weight_at(fr_resample filter, double x) {
    const double a = -0.5, pi = 3.14159265358979323846;
    x = fabs(x);
    switch (filter) {
    case FR_RESAMPLE_LANCZOS:
        if (x == 0.0) return 1.0;
        return x < 3.0 ? sine_of_pi_times(x) / (pi * x) * (sine_of_pi_times(x / 3.0) / (pi * (x / 3.0))) : 0.0;
    case FR_RESAMPLE_BILINEAR: return x < 1.0 ? 1.0 - x : 0.0;
    case FR_RESAMPLE_BICUBIC: break;
    }
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

/* Gives the distance in pixels at which the weights of a filter become 0, if the picture does not shrink. */
static double reach_of(fr_resample filter) {
    return filter == FR_RESAMPLE_LANCZOS ? 3.0 : filter == FR_RESAMPLE_BILINEAR ? 1.0 : 2.0;
}

/* Computes new pixel i's weights. They are computed as real numbers, scaled so that their sum is 1, and rounded to
 * integers. real: room for the real numbers. */
static void weigh(taps *t, fr_resample filter, size_t i, size_t from, double scale, double *real) {
    double stretch = scale < 1.0 ? 1.0 : scale, reach = reach_of(filter) * stretch, sum = 0.0;
    double centre = ((double)i + 0.5) * scale;
    double begin = centre - reach + 0.5, end = centre + reach + 0.5;
    size_t first = begin < 0.0 ? 0 : (size_t)begin, last = end > (double)from ? from : (size_t)end;
    for (size_t j = 0; j < last - first; j++) {
        real[j] = weight_at(filter, ((double)(j + first) - centre + 0.5) * (1.0 / stretch));
        sum += real[j];
    }
    t->first[i] = first;
    t->count[i] = last - first;
    for (size_t j = 0; j < last - first; j++) {
        double weight = (sum == 0.0 ? real[j] : real[j] / sum) * (1 << WEIGHT_BITS);
        t->weights[i * t->taps + j] = (int32_t)(weight < 0.0 ? weight - 0.5 : weight + 0.5);
    }
}

static void free_taps(taps *t) {
    free(t->first);
    free(t->count);
    free(t->weights);
}

/* Makes the weights for a side of `from` pixels that gets `to` pixels. */
static fr_status make_taps(taps *t, fr_resample filter, size_t from, size_t to) {
    double scale = (double)from / (double)to;
    t->taps = 2 * (size_t)(reach_of(filter) * (scale < 1.0 ? 1.0 : scale) + 1.0) + 1;
    t->first = calloc(to, sizeof *t->first);
    t->count = calloc(to, sizeof *t->count);
    t->weights = calloc(to, t->taps * sizeof *t->weights);
    double *real = calloc(t->taps, sizeof *real);
    bool taken = t->first && t->count && t->weights && real;
    for (size_t i = 0; taken && i < to; i++) weigh(t, filter, i, from, scale, real);
    free(real);
    return taken ? FR_OK : fr_fail_memory("a picture's weights", to * t->taps * sizeof *t->weights);
}

/* Rounds a sum to a byte. Sums stay below 2^31, because the magnitudes of the weights add up to less than 1.6. */
static uint8_t to_byte(int32_t sum) {
    int32_t value = sum < 0 ? 0 : sum >> WEIGHT_BITS;
    return (uint8_t)(value > 255 ? 255 : value);
}

/* Computes one new pixel of `channels` bytes from old ones that are `step` bytes apart. */
static void blend(uint8_t *to, const uint8_t *from, size_t step, const taps *t, size_t i, size_t channels) {
    const int32_t *weights = t->weights + i * t->taps;
    from += t->first[i] * step;
    for (size_t c = 0; c < channels; c++) {
        int32_t sum = 1 << (WEIGHT_BITS - 1);
        for (size_t j = 0; j < t->count[i]; j++) sum += from[j * step + c] * weights[j];
        to[c] = to_byte(sum);
    }
}

static fr_status take(fr_image *image, size_t width, size_t height) {
    *image = (fr_image){.rgb = malloc(width * height * CHANNELS), .width = width, .height = height};
    return image->rgb ? FR_OK : fr_fail_memory("a resized picture", width * height * CHANNELS);
}

/* Makes a picture with another width or, if `tall`, with another height. */
static fr_status resize_side(const fr_image *image, fr_resample filter, size_t to, bool tall, fr_image *resized) {
    taps t = {0};
    size_t row = image->width * CHANNELS;
    fr_status status = make_taps(&t, filter, tall ? image->height : image->width, to);
    if (status == FR_OK) status = take(resized, tall ? image->width : to, tall ? to : image->height);
    for (size_t y = 0; status == FR_OK && y < resized->height; y++) {
        uint8_t *out = resized->rgb + y * resized->width * CHANNELS;
        if (tall)
            blend(out, image->rgb, row, &t, y, row);
        else
            for (size_t x = 0; x < to; x++) blend(out + x * CHANNELS, image->rgb + y * row, CHANNELS, &t, x, CHANNELS);
    }
    free_taps(&t);
    return status;
}

static fr_status copy(const fr_image *image, fr_image *resized) {
    FR_TRY(take(resized, image->width, image->height));
    memcpy(resized->rgb, image->rgb, image->width * image->height * CHANNELS);
    return FR_OK;
}

fr_status fr_image_crop(const fr_image *image, size_t left, size_t top, size_t width, size_t height,
                        fr_image *cropped) {
    FR_TRY(take(cropped, width, height));
    for (size_t y = 0; y < height; y++)
        memcpy(cropped->rgb + y * width * CHANNELS, image->rgb + ((top + y) * image->width + left) * CHANNELS,
               width * CHANNELS);
    return FR_OK;
}

fr_status fr_image_resize(const fr_image *image, fr_resample filter, size_t width, size_t height, fr_image *resized) {
    fr_image wide = {0};
    *resized = (fr_image){0};
    if (width == image->width && height == image->height) return copy(image, resized);
    if (height == image->height) return resize_side(image, filter, width, false, resized);
    if (width == image->width) return resize_side(image, filter, height, true, resized);
    FR_TRY(resize_side(image, filter, width, false, &wide));
    fr_status status = resize_side(&wide, filter, height, true, resized);
    fr_image_close(&wide);
    return status;
}
