/* The description of quantized weights in a folder's configuration.
 *
 * In: quantization_config of config.json (in transformers' older spelling compression_config, in MLX's quantization),
 * or the file beside it that AutoGPTQ, AutoAWQ or ModelOpt write. Out: the method, and what the tensors themselves do
 * not tell: bits, columns of a group, whether zeros are stored, for each module. A method, format or mode that is not
 * built is refused by its name. */
#ifndef FR_FORMATS_STORAGE_CONFIG_H
#define FR_FORMATS_STORAGE_CONFIG_H

#include "formats/checkpoint.h"

typedef enum fr_storage_method {
    FR_METHOD_NONE, /* the configuration names none, or one whose tensors are read elsewhere (gpt-oss's mxfp4) */
    FR_METHOD_AWQ,
    FR_METHOD_GPTQ,
    FR_METHOD_COMPRESSED,
    FR_METHOD_MODELOPT,
    FR_METHOD_MLX,
    FR_METHOD_FP8
} fr_storage_method;

#define FR_GROUP_ROW SIZE_MAX /* a group is a whole row */

typedef struct fr_storage_config {
    fr_storage_method method;
    const json_t *object;             /* the description, NULL: there is none */
    const char *where;                /* the name of its file */
    size_t bits, group;               /* 0: unknown */
    bool symmetric;                   /* the zero is 2^(bits - 1) for all groups */
    bool less_one;                    /* GPTQ: zeros are stored minus 1 */
    struct fr_name_pattern *patterns; /* those that were compiled so far */
    size_t pattern_count;
} fr_storage_config;

/* The description of one module. */
typedef struct fr_storage_scheme {
    size_t bits, group; /* 0: unknown; group may be FR_GROUP_ROW */
    bool symmetric;
    size_t block[2]; /* rows and columns of a block that has one scale; 0: unknown */
} fr_storage_scheme;

fr_status fr_storage_config_read(const fr_checkpoint *files, fr_storage_config *config);
void fr_storage_config_close(fr_storage_config *config);
fr_status fr_storage_config_module(fr_storage_config *config, const char *module, fr_storage_scheme *scheme);

#endif
