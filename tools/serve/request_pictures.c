/* Opens the pictures of a request, which are base64 texts in its body (generation_request_parts.h). */
#include <stdlib.h>

#include "tools/serve/base64.h"
#include "tools/serve/generation_request_parts.h"

/* The largest number of pixels that the pictures of a request may have together. That many pixels take 100 MB. */
#define PIXELS_MAX ((size_t)1 << 25)

bool fr_generation_request_take_picture(fr_generation_request *request, fr_job *job, const char *key,
                                        const char *base64, size_t length) {
    size_t size, at = job->picture_count, left = PIXELS_MAX - request->pixels;
    char name[32];
    if (at == FR_IMAGES_MAX) return fr_job_refuse(job, FR_USAGE, "%s: there are more than %d", key, FR_IMAGES_MAX);
    unsigned char *bytes = fr_base64_read(base64, length, &size);
    if (!bytes) return fr_job_refuse(job, FR_USAGE, "%s: picture %zu is no base64", key, at + 1);
    snprintf(name, sizeof name, "picture %zu", at + 1);
    fr_status status = fr_picture_open_bytes(bytes, size, name, &left, job->setting->loaded->model, &job->pictures[at]);
    free(bytes);
    request->pixels = PIXELS_MAX - left;
    job->picture_count += status == FR_OK;
    return fr_job_check(job, status);
}

bool fr_generation_request_take_media(fr_generation_request *request, fr_job *job, json_t *prompt) {
    const json_t *media = json_object_get(prompt, "multimodal_data");
    if (!media || json_is_null(media) || (json_is_array(media) && !json_array_size(media))) return true;
    if (job->suffix || !json_object_get(prompt, "prompt_string"))
        return fr_job_refuse(job, FR_USAGE, "multimodal_data belongs beside a prompt_string, without a suffix");
    if (fr_model_fact(job->setting->loaded->model, FR_FACT_IMAGE_TOKEN) < 0)
        return fr_job_refuse(job, FR_USAGE, "multimodal_data: this model sees no pictures");
    if (!json_is_array(media)) return fr_job_refuse(job, FR_USAGE, "multimodal_data must be an array of base64 texts");
    for (size_t i = 0; i < json_array_size(media); i++) {
        const json_t *entry = json_array_get(media, i);
        if (!json_is_string(entry))
            return fr_job_refuse(job, FR_USAGE, "multimodal_data must be an array of base64 texts");
        if (!fr_generation_request_take_picture(request, job, "multimodal_data", json_string_value(entry),
                                                json_string_length(entry)))
            return false;
    }
    json_object_del(prompt, "multimodal_data");
    return true;
}
