/* Opens a model on disk, a published folder or a GGUF file: its description and all its tensors.
 *
 * In: one of
 *     a folder with config.json and model.safetensors, or with model.safetensors.index.json and the shards that it
 *     names (plain names inside the folder only)
 *     a GGUF file; NAME-00002-of-00003.gguf stands for all three files if its metadata say that it is one of several
 *     a folder that has one GGUF file (gguf_folder.h)
 * Out, for a folder: the parsed config.json and, if they exist, generation_config.json, the file that describes
 * quantized weights, and 1_Pooling/config.json. Out, for GGUF: the metadata of the first shard. Out, in either case:
 * the mapped weight files and one list of all tensors. Every tensor of a folder's index must be in the shard that the
 * index names, and every tensor of a shard must be in the index. Every GGUF shard must state its number. */
#ifndef FR_FORMATS_CHECKPOINT_H
#define FR_FORMATS_CHECKPOINT_H

#include "formats/gguf.h"
#include "formats/json.h"
#include "formats/map.h"
#include "formats/rotation.h"
#include "formats/tensors.h"

#define FR_SHARDS_MAX 1024

/* sentence-transformers puts this file into the folders that it writes. */
#define FR_POOLING_FILE "1_Pooling/config.json"

typedef struct fr_checkpoint {
    char *path;           /* path of the folder or of the file, as the caller gave it */
    fr_gguf *gguf;        /* metadata of a GGUF file; NULL: the checkpoint is a folder */
    json_t *config;       /* config.json, an object; NULL: the checkpoint is a GGUF file */
    json_t *generation;   /* generation_config.json, an object, or NULL */
    json_t *quantization; /* the file beside config.json that describes quantized weights, an object, or NULL */
    const char *quantization_file; /* name of the file that `quantization` was read from */
    json_t *pooling;               /* FR_POOLING_FILE, an object, or NULL */
    fr_rotation_set *rotations;    /* the rotations of the weights (rotation.h); NULL: no weight is rotated */
    fr_map *files;
    char **file_names;
    size_t file_count;
    fr_tensors tensors;          /* all tensors; each quantized module of a folder is one tensor here (storage.h) */
    fr_tensors parts;            /* in a folder with quantized modules, all tensors as they are stored; empty in other
                                  * checkpoints */
    struct fr_storage *storages; /* how the quantized modules are stored */
    bool channels_last; /* true if mlx-lm wrote the folder. mlx-lm stores convolutions over positions as [channels,
                         * kernel, 1]. It adds 1 to the norms of families that publish their norms minus 1 */
    fr_tensors unread;  /* tensors of types that forerun does not support, such as F8_E5M2; only their names and spans
                         * are known */
} fr_checkpoint;

/* Opens a folder or a GGUF file. If use_mmap is false, only headers are read here. The caller must then fill the bytes
 * of a tensor with fr_map_fill before reading them. A failure leaves nothing open. */
fr_status fr_checkpoint_open(fr_checkpoint *checkpoint, const char *path, bool use_mmap);

/* Opens a whole GGUF file in memory. The bytes belong to the caller and must outlive the checkpoint. */
fr_status fr_checkpoint_open_bytes(fr_checkpoint *checkpoint, const void *bytes, size_t size, const char *name);
void fr_checkpoint_close(fr_checkpoint *checkpoint);

/* Fails with FR_INPUT if one of the files was written to since it was mapped. */
fr_status fr_checkpoint_check(const fr_checkpoint *checkpoint);

/* Gives the pages before a mapped file's tensors back to the system. These pages hold metadata that has been read,
 * mostly the texts of a vocabulary. A later access reads the pages from the file again. */
void fr_checkpoint_release_head(const fr_checkpoint *checkpoint);

/* Gives the tensor of that name. Fails with FR_INPUT if the tensor is missing or its type is not supported. The error
 * line says which of the two is the case. */
fr_status fr_checkpoint_tensor(const fr_checkpoint *checkpoint, const char *name, const fr_tensor **tensor);

/* Opens only a folder's configuration, without weights. */
fr_status fr_checkpoint_open_config(fr_checkpoint *checkpoint, const char *folder);

#endif
