/* Reads how a folder's configuration describes its quantized weights.
 *
 * In: the member quantization_config of config.json (older versions of transformers call it compression_config, MLX
 * calls it quantization), or the file beside config.json that AutoGPTQ, AutoAWQ or ModelOpt write. Out: the method and,
 * for each module, the facts that the tensors' shapes do not show: the number of bits, the columns of a group, and if
 * zero points are stored. If a method, format or mode is not supported, the error line names it. */
#ifndef FR_FORMATS_STORAGE_CONFIG_H
#define FR_FORMATS_STORAGE_CONFIG_H

#include "formats/checkpoint.h"

typedef enum fr_storage_method {
    FR_METHOD_NONE, /* the configuration names no method, or a method that other code reads (gpt-oss's mxfp4) */
    FR_METHOD_AWQ,
    FR_METHOD_GPTQ,
    FR_METHOD_COMPRESSED,
    FR_METHOD_MODELOPT,
    FR_METHOD_MLX,
    FR_METHOD_FP8
} fr_storage_method;

#define FR_GROUP_ROW SIZE_MAX /* the group size that means a whole row */

typedef struct fr_storage_config {
    fr_storage_method method;
    const json_t *object;             /* the object that describes the weights; NULL: there is none */
    const char *where;                /* the name of the file with that object */
    size_t bits, group;               /* 0: unknown */
    bool symmetric;                   /* no zero points are stored, because all of them are 2^(bits - 1) */
    bool less_one;                    /* GPTQ: each stored zero point is smaller by one than the real one */
    struct fr_name_pattern *patterns; /* patterns compiled so far */
    size_t pattern_count;
} fr_storage_config;

/* Holds the configured settings of one quantized module. */
typedef struct fr_storage_scheme {
    size_t bits, group; /* 0: unknown; a group of FR_GROUP_ROW is a whole row */
    bool symmetric;
    size_t block[2]; /* rows and columns that share one scale; 0: unknown */
} fr_storage_scheme;

fr_status fr_storage_config_read(const fr_checkpoint *files, fr_storage_config *config);
void fr_storage_config_close(fr_storage_config *config);
fr_status fr_storage_config_module(fr_storage_config *config, const char *module, fr_storage_scheme *scheme);

#endif
