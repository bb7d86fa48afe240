/* Opens a target of any family: see model.h. */
#include "src/engine/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sizes.h"
#include "formats/tokenizer_gguf.h"
#include "formats/tokenizer_json.h"
#include "kernels/dispatch.h"
#include "src/language/chat/tokenizer_open.h"
#include "src/engine/families/architecture.h"
#include "src/engine/families/config.h"
#include "src/engine/families/families.h"
#include "src/engine/encoder/encoder.h"
#include "src/engine/layers/adapted.h"
#include "src/engine/model/ends.h"
#include "src/engine/model/pooling.h"
#include "src/language/tokenizer/tokenizer.h"
#include "src/engine/vision/mmproj.h"
#include "src/engine/vision/vision.h"

static bool is_written_as(const fr_family *family, const char *architecture) {
    return family && family->gguf && strcmp(family->gguf, architecture) == 0;
}

bool fr_model_is_of(const fr_model *model, const char *architecture) {
    if (!model->family) return false;
    return fr_architecture_in(model->family->architectures, architecture) ||
           is_written_as(model->family, architecture) ||
           is_written_as(fr_family_named(architecture), fr_checkpoint_architecture(&model->files));
}

fr_status fr_family_find(const fr_checkpoint *files, const fr_family **family) {
    const char *architecture = fr_checkpoint_architecture(files);
    FR_TRY(fr_refuse_drafter(files));
    *family = fr_family_of(files);
    if (*family) return FR_OK;
    if (fr_is_mmproj(files))
        return fr_fail_about(FR_OPT_MMPROJ, FR_INPUT,
                             "%s is a vision tower (%s), which is opened with its "
                             "text model",
                             files->path, architecture);
    FR_TRY(fr_check_built(files));
    return fr_family_refuse(files, NULL);
}

static fr_status open_tokenizer(fr_model *model, const char *chat_template) {
    const fr_gguf *gguf = model->files.gguf;
    if (gguf)
        return fr_tokenizer_gguf_has(gguf) ? fr_tokenizer_from_gguf(gguf, chat_template, model->pre, &model->tokenizer)
                                           : FR_OK;
    if (!fr_tokenizer_json_there(model->files.path)) return FR_OK;
    return fr_tokenizer_from_folder(model->files.path, chat_template, model->pre, &model->tokenizer);
}

/* Gives the model its vision tower. A picture may have further rows that the text model adds to the outputs of its
 * layers. Checks that the tower makes exactly as many of these rows as the text model adds. */
static fr_status set_vision(fr_model *model, const fr_trunk_spec *spec, fr_vision *vision, int32_t image_token,
                            const char *path) {
    size_t rows = fr_vision_row_width(vision) / spec->hidden;
    model->vision = vision;
    model->image_token = image_token;
    if (rows == 1 + spec->deepstack) return FR_OK;
    return fr_fail(FR_INPUT, "%s: the vision tower makes %zu rows of a token of a picture, the text model reads %zu",
                   path, rows, 1 + spec->deepstack);
}

/* Opens the vision tower of a GGUF text model. The tower is in a file of its own. */
static fr_status open_mmproj(fr_model *model, const fr_options *options) {
    const char *token = model->family->picture;
    if (!token)
        return fr_fail(FR_INPUT, "%s: architecture %s takes no pictures, so it has no use for %s", model->files.path,
                       fr_checkpoint_architecture(&model->files), options->mmproj);
    if (model->vision)
        return fr_fail(FR_INPUT, "%s has a vision tower of its own and no use for %s", model->files.path,
                       options->mmproj);
    FR_TRY(fr_mmproj_open(options->mmproj, options->value[FR_OPT_MMAP] != 0, model->kernels, model->trunk.spec.hidden,
                          &model->mmproj));
    if (!fr_vision_is_of(model->mmproj->vision, model->family->architectures))
        return fr_fail(FR_INPUT, "%s: %s is a vision tower of another architecture", model->files.path,
                       options->mmproj);
    if (fr_vision_token_text(model->mmproj->vision)) token = fr_vision_token_text(model->mmproj->vision);
    int32_t id = model->tokenizer ? fr_tokenizer_id(model->tokenizer, token) : -1;
    if (id < 0 || (size_t)id >= model->trunk.spec.vocab)
        return fr_fail(FR_INPUT, "%s has no token %s to stand for a picture", model->files.path, token);
    fr_weights_compare(&model->mmproj->weights, (fr_mixture_size){0}, &model->weights, fr_memory_available(""));
    fr_notes_copy(&model->weights.notes, &model->mmproj->weights.notes);
    return set_vision(model, &model->trunk.spec, model->mmproj->vision, id, options->mmproj);
}

static fr_status read_spec(fr_model *model, fr_trunk_spec *spec) {
    fr_source source;
    fr_model_spec whole;
    fr_vision *vision;
    FR_TRY(fr_source_of(&model->weights, &source));
    fr_status status = fr_family_read(model->family, &source, &whole);
    *spec = whole.trunk;
    model->mtp_layers = whole.mtp_layers;
    if (status != FR_OK || !model->family->sees || !fr_vision_exists(&model->weights)) return status;
    FR_TRY(fr_vision_open(&model->weights, model->kernels, spec->hidden, &vision));
    return set_vision(model, spec, vision, whole.image_token, model->files.path);
}

static fr_status open_trunk(fr_model *model) {
    fr_trunk_spec spec = {0};
    fr_status status = read_spec(model, &spec);
    if (status == FR_OK) status = fr_trunk_open(&model->trunk, &spec, model->family->names, &model->weights, NULL);
    if (status == FR_OK) fr_adapted_number(&model->trunk, model->family->names);
    free(spec.layer);
    return status;
}

/* Binds a text encoder. A text encoder has no family. */
static fr_status bind_encoder(fr_model *model, const char *chat_template) {
    FR_TRY(fr_weights_open(&model->weights, &model->files));
    model->image_token = -1;
    FR_TRY(fr_encoder_open(&model->weights, model->kernels, &model->encoder));
    FR_TRY(open_tokenizer(model, chat_template));
    FR_TRY(fr_model_read_pooling(model));
    if (model->tokenizer) fr_notes_copy(&model->weights.notes, fr_tokenizer_notes(model->tokenizer));
    return FR_OK;
}

fr_status fr_model_check_generates(const fr_model *model) {
    if (!model->encoder) return FR_OK;
    return fr_fail(FR_INPUT, "%s is a text encoder, which generates no text: forerun embed and rerank run it",
                   model->files.path);
}

fr_status fr_model_check_head(const fr_model *model) {
    const json_t *config = model->files.config, *text = json_object_get(config, "text_config");
    const json_t *tied = json_object_get(json_is_object(text) ? text : config, "tie_word_embeddings");
    if (!model->files.pooling || !json_is_false(tied)) return FR_OK;
    if (json_is_true(json_object_get(config, "tie_word_embeddings"))) return FR_OK;
    if (fr_weights_has(&model->weights, fr_names_top(&model->weights), "lm_head.weight")) return FR_OK;
    if (fr_weights_has(&model->weights, "", "embed_out.weight")) return FR_OK;
    return fr_fail(FR_INPUT, "%s has no lm_head.weight, so it makes embeddings, but generates and scores no text",
                   model->files.path);
}

fr_status fr_model_bind_files(fr_model *model, const char *chat_template) {
    if (fr_encoder_is(&model->files)) return bind_encoder(model, chat_template);
    FR_TRY(fr_family_find(&model->files, &model->family));
    FR_TRY(fr_weights_open(&model->weights, &model->files));
    model->weights.activation_stats = model->activation_stats;
    model->image_token = -1;
    FR_TRY(open_trunk(model));
    FR_TRY(fr_tensor_names_check_read(&model->weights, model->family->names, model->trunk.spec.layers,
                                      fr_larger(model->mtp_layers, 1)));
    fr_weights_note_transposed(&model->weights);
    FR_TRY(open_tokenizer(model, chat_template));
    FR_TRY(fr_model_read_ends(model));
    FR_TRY(fr_model_read_pooling(model));
    if (model->tokenizer) fr_notes_copy(&model->weights.notes, fr_tokenizer_notes(model->tokenizer));
    return FR_OK;
}

static fr_status open_files(fr_model *model, const char *path, const fr_options *options) {
    if (!options->bytes) return fr_open_model_files(&model->files, path, options->value[FR_OPT_MMAP] != 0);
    return fr_checkpoint_open_bytes(&model->files, options->bytes, options->byte_count, path);
}

typedef fr_status bind_model(fr_model *model, const char *path, const fr_options *options);

static fr_status bind(fr_model *model, const char *path, const fr_options *options) {
    FR_TRY(fr_kernels_select(*options->isa ? options->isa : NULL, &model->kernels));
    FR_TRY(fr_plan_from_options(options, &model->machine, &model->plan));
    FR_TRY(open_files(model, path, options));
    memcpy(model->pre, options->tokenizer_pre, sizeof model->pre);
    model->activation_stats = (fr_activation_stats_kind)options->activation_stats;
    FR_TRY(fr_model_bind_files(model, options->chat_template));
    fr_checkpoint_release_head(&model->files);
    if (model->encoder && options->ranks)
        return fr_fail(FR_UNBUILT, "%s: running a text encoder on several ranks is not built yet", path);
    if (model->encoder && *options->mmproj) FR_TRY(fr_model_check_generates(model));
    model->weights.ranks = options->ranks;
    model->rank_plan = options->rank_plan;
    if (options->ranks) FR_TRY(fr_trunk_share(&model->trunk, &model->weights, &model->rank_plan));
    fr_weights_compare(&model->weights, fr_spec_mixture_size(&model->trunk.spec), NULL, fr_memory_available(""));
    if (*options->mmproj) FR_TRY(open_mmproj(model, options));
    if (!model->vision) return FR_OK;
    FR_TRY(fr_vision_limit(model->vision, options));
    model->block_rows = fr_spec_sees_block(&model->trunk.spec) ? fr_vision_run_max(model->vision) : 0;
    return FR_OK;
}

static fr_status outline(fr_model *model, const char *path, const fr_options *options) {
    FR_TRY(fr_open_files(&model->files, path, options->value[FR_OPT_MMAP] != 0));
    model->family = fr_family_of(&model->files);
    if (!model->family)
        return fr_fail(FR_INPUT, "%s: architecture \"%s\" is no target's that is known", path,
                       fr_checkpoint_architecture(&model->files));
    FR_TRY(fr_weights_open(&model->weights, &model->files));
    return read_spec(model, &model->trunk.spec);
}

static fr_status make(bind_model *fill, const char *path, const fr_options *options, fr_model **model) {
    *model = NULL;
    fr_model *m = calloc(1, sizeof *m);
    if (!m) return fr_fail_memory("model", sizeof *m);
    fr_status status = fill(m, path, options);
    if (status == FR_OK)
        *model = m;
    else
        fr_model_unload(m);
    return status;
}

fr_status fr_model_bind(const char *path, const fr_options *options, fr_model **model) {
    return make(bind, path, options, model);
}

fr_status fr_model_outline(const char *path, const fr_options *options, fr_model **model) {
    return make(outline, path, options, model);
}

fr_status fr_model_load(const char *path, const fr_options *options, fr_model **model) {
    FR_TRY(fr_model_bind(path, options, model));
    fr_status status = fr_weights_load(&(*model)->weights, &(*model)->plan, options);
    if (status == FR_OK && (*model)->mmproj)
        status = fr_weights_load(&(*model)->mmproj->weights, &(*model)->plan, options);
    if (status == FR_OK) return FR_OK;
    fr_model_unload(*model);
    *model = NULL;
    return status;
}

void fr_model_unload(fr_model *model) {
    if (!model) return;
    if (model->mmproj)
        fr_mmproj_close(model->mmproj);
    else
        fr_vision_close(model->vision);
    fr_trunk_close(&model->trunk);
    fr_encoder_close(model->encoder);
    fr_tokenizer_close(model->tokenizer);
    fr_weights_close(&model->weights);
    fr_checkpoint_close(&model->files);
    free(model);
}

uint64_t fr_model_bytes(const fr_model *model) {
    return model->weights.bytes + (model->mmproj ? model->mmproj->weights.bytes : 0);
}

fr_memory_use fr_model_memory_use(const fr_model *model) {
    const fr_memory_use *own = &model->weights.memory_use;
    return model->mmproj ? fr_memory_use_sum(own, &model->mmproj->weights.memory_use) : *own;
}
