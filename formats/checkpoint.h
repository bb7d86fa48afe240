/* A model on disk, a published folder or a GGUF file: what describes it, and all its tensors.
 *
 * In: a folder with config.json and model.safetensors, or model.safetensors.index.json and the shards it names (plain
 * names inside the folder, nothing else); or a GGUF file, of which NAME-00002-of-00003.gguf stands for all three, if
 * it says of itself that it is one of several; or a folder that has one GGUF file (gguf_folder.h). Out:
 * parsed config.json; generation_config.json, hf_quant_config.json and 1_Pooling/config.json if there; or GGUF's
 * metadata (the first shard's);
 * mapped weight files, one tensor directory. Every tensor of the index must be in the shard that the index names, and
 * the other way round; every GGUF shard must say which it is. */
#ifndef FR_FORMATS_CHECKPOINT_H
#define FR_FORMATS_CHECKPOINT_H

#include "formats/gguf.h"
#include "formats/json.h"
#include "formats/map.h"
#include "formats/tensors.h"

#define FR_MAX_SHARDS 1024

/* Of a folder that sentence-transformers wrote. */
#define FR_POOLING_FILE "1_Pooling/config.json"

typedef struct fr_checkpoint {
    char *path;         /* the folder, or the file as it was given */
    fr_gguf *gguf;      /* NULL: a folder */
    json_t *config;     /* config.json, an object; NULL: GGUF */
    json_t *generation; /* generation_config.json, an object, or NULL */
    json_t *quantization; /* hf_quant_config.json, the same */
    json_t *pooling;      /* FR_POOLING_FILE, the same */
    fr_map *files;
    char **file_names;
    size_t file_count;
    fr_tensors tensors;
    fr_tensors unread; /* tensors of types that are not read, F8_E5M2 say: names and spans alone */
} fr_checkpoint;

/* use_mmap false: tensors' bytes must be filled by fr_map_fill before they are read (headers are filled on the way in).
 * A failure leaves nothing open. */
fr_status fr_checkpoint_open(fr_checkpoint *checkpoint, const char *path, bool use_mmap);

/* The same of a GGUF file in memory, whole: bytes of a caller who keeps them. */
fr_status fr_checkpoint_open_bytes(fr_checkpoint *checkpoint, const void *bytes, size_t size, const char *name);
void fr_checkpoint_close(fr_checkpoint *checkpoint);

/* FR_INPUT where one of its files was written to since it was mapped. */
fr_status fr_checkpoint_check(const fr_checkpoint *checkpoint);

/* Gives back what a mapped file has in front of its tensors: pages of metadata that have been read, texts of a
 * vocabulary above all. Whoever reads them again finds them in the file. */
void fr_checkpoint_release_head(const fr_checkpoint *checkpoint);

/* The tensor of that name; FR_INPUT when it is missing or of a type that is not read, and the line says which. */
fr_status fr_checkpoint_tensor(const fr_checkpoint *checkpoint, const char *name, const fr_tensor **tensor);

/* Opens just a folder's config, no weights. */
fr_status fr_checkpoint_open_config(fr_checkpoint *checkpoint, const char *folder);

/* "FOLDER/NAME", malloc'd; NULL when out of memory. */
char *fr_path_join(const char *folder, const char *name);

#endif
