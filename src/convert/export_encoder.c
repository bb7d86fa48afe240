/* Turns a text encoder's folder into GGUF tensors and keys, as llama.cpp's converter does (export.h).
 *
 * In: an opened folder, with the files of sentence-transformers. Out: the keys, and the tensors with their names in
 * GGUF, including the dense layers after the pooling. A GGUF file says less than the folder. It has no prompts, no flag
 * that rows are scaled to length 1, and no limit below the model's positions. */
#include "base/error.h"
#include "src/convert/export.h"

/* Adds the dense layers after the pooling. They must be of EmbeddingGemma's kind: without bias, activation or
 * residual. */
static fr_status add_steps(const fr_export *export, fr_outputs *outputs) {
    size_t dense = 0;
    const fr_recipe *recipe = &export->recipe;
    for (size_t i = 0; i < recipe->step_count; i++) {
        const fr_recipe_step *step = &recipe->steps[i];
        if (step->kind == FR_STEP_NORMALIZE) continue;
        bool plain = step->kind == FR_STEP_DENSE && !step->bias && !step->adds_input &&
                     step->activation == FR_DENSE_IDENTITY && dense < 2;
        if (!plain || strcmp(export->architecture, "gemma-embedding") != 0)
            return fr_fail(FR_UNBUILT,
                           "%s: its module %zu after the pooling has no form in GGUF files of "
                           "architecture \"%s\"",
                           export->files->path, i + 1, export->architecture);
        char name[32];
        snprintf(name, sizeof name, "dense_%zu.weight", 2 + dense++);
        FR_TRY(fr_outputs_add_values(outputs, name, FR_F32, step->out, step->weight));
        fr_output *output = fr_outputs_last(outputs);
        output->dims = 2;
        output->shape[1] = step->in;
    }
    return FR_OK;
}

/* Returns true for a tensor that the file stores as plain float numbers. */
static bool is_plain(const fr_export *export, const fr_tensor *tensor) {
    return !tensor->storage && !tensor->packed && !fr_weights_scales(export->weights, tensor) &&
           tensor->type < FR_FLOAT_TYPES;
}

/* Takes `count` rows of a table, from row `first` on. */
static fr_status take_rows(const fr_export *export, size_t first, size_t count, const fr_tensor *table,
                           fr_tensor *taken) {
    if (!is_plain(export, table) || table->dims != 2 || table->shape[0] <= first || table->shape[0] - first < count)
        return fr_fail(FR_UNBUILT, "%s: tensor %s in this form is not written as GGUF", export->files->path,
                       table->name);
    uint64_t row = table->bytes / table->shape[0];
    *taken = *table;
    taken->data = (const uint8_t *)table->data + first * row;
    taken->bytes = count * row;
    taken->shape[0] = count;
    return FR_OK;
}

/* Gives the number of token types that the file has. If a file has a type 1, readers give it to the second text of a
 * pair. So for a cross-encoder whose tokenizer gives no types, only type 0 is written. */
static size_t written_types(const fr_export *export) {
    fr_encoder_facts facts = fr_encoder_fact(export->target->encoder);
    return facts.types && facts.labels && !export->recipe.typed ? 1 : facts.types;
}

/* Leaves out rows that the file's readers must not use. These are RoBERTa's first positions, because llama.cpp gives a
 * text's first token position 0, and token types that the folder does not use. */
static fr_status cut_table(fr_export *export, const char *name, const fr_tensor **table) {
    fr_encoder_facts facts = fr_encoder_fact(export->target->encoder);
    size_t rows = (size_t)(*table)->shape[0], types = written_types(export);
    bool positions = facts.first && strcmp(name, "position_embd.weight") == 0;
    if (!positions && (types == facts.types || strcmp(name, "token_types.weight") != 0)) return FR_OK;
    fr_tensor *cut = positions ? &export->positions : &export->types;
    size_t first = positions ? facts.first : 0;
    FR_TRY(take_rows(export, first, positions ? rows - first : types, *table, cut));
    *table = cut;
    return FR_OK;
}

/* Leaves out the bias of a mixture's experts, because llama.cpp has no tensor for it. Every value of the bias must be
 * 0. */
static fr_status drop_bias(const fr_export *export, const fr_tensor *tensor) {
    bool zero = is_plain(export, tensor);
    for (uint64_t i = 0; zero && i < tensor->shape[0]; i++) {
        float value;
        fr_dtype_decode(tensor->type, (const uint8_t *)tensor->data + i * fr_dtype_row_bytes(tensor->type, 1), &value,
                        1);
        zero = value == 0;
    }
    if (zero) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: tensor %s is not 0, and GGUF files of architecture \"%s\" have no bias of experts",
                   export->files->path, tensor->name, export->architecture);
}

/* Adds a third dimension to the flat tensor of a mixture's experts. The tensor for the down projection is stored
 * transposed. */
static fr_status part_experts(const fr_export *export, const fr_tensor *tensor, fr_output *output) {
    fr_encoder_facts facts = fr_encoder_fact(export->target->encoder);
    bool down = strstr(output->name, "ffn_down_exps") != NULL;
    if (tensor->dims != 2 || !is_plain(export, tensor))
        return fr_fail(FR_UNBUILT, "%s: tensor %s in this form is not written as GGUF", export->files->path,
                       tensor->name);
    output->dims = 3;
    output->shape[0] = facts.experts;
    output->shape[1] = down ? facts.hidden : facts.ffn;
    output->shape[2] = down ? facts.ffn : facts.hidden;
    output->transposed = down;
    output->each = down ? facts.ffn : 0;
    return FR_OK;
}

fr_status fr_export_encoder_open(fr_export *export, fr_outputs *outputs) {
    const fr_model *model = export->target;
    export->files = &model->files;
    export->weights = &model->weights;
    export->architecture = fr_encoder_gguf_architecture(model->encoder);
    if (!export->architecture)
        return fr_fail(FR_UNBUILT, "%s: writing a text encoder of architecture %s as GGUF is not built yet",
                       model->files.path, fr_checkpoint_architecture(&model->files));
    fr_encoder_facts facts = fr_encoder_fact(model->encoder);
    outputs->layers = facts.layers;
    outputs->gqa = 1;
    FR_TRY(fr_recipe_read(model, &export->recipe));
    for (size_t i = 0; i < model->files.tensors.count; i++) {
        const fr_tensor *tensor = &model->files.tensors.items[i];
        char name[64];
        fr_values change;
        /* Many folders have tensors that no forward reads, such as poolers, heads for training, and lists of
         * positions. */
        if (!fr_weights_bound(export->weights, tensor)) continue;
        if (fr_encoder_is_expert_bias(model->encoder, tensor->name)) {
            FR_TRY(drop_bias(export, tensor));
            continue;
        }
        if (!fr_encoder_gguf_name(model->encoder, tensor->name, name, sizeof name, &change))
            return fr_fail(FR_UNBUILT, "%s: tensor %s has no name in GGUF", model->files.path, tensor->name);
        FR_TRY(cut_table(export, name, &tensor));
        FR_TRY(fr_outputs_add(outputs, name, tensor));
        fr_outputs_last(outputs)->change = change;
        fr_outputs_last(outputs)->scales = fr_weights_scales(export->weights, &model->files.tensors.items[i]);
        if (strstr(name, "_exps.")) FR_TRY(part_experts(export, tensor, fr_outputs_last(outputs)));
    }
    return add_steps(export, outputs);
}

/* Adds the way in which rows are pooled. A folder without files of sentence-transformers gets the mean, which is also
 * sentence-transformers' default. */
static fr_status put_pooling(const fr_export *export, fr_gguf_writer *writer) {
    static const fr_pooling numbers[FR_POOL_MODES] = {
        [FR_POOL_CLS] = FR_POOLING_CLS, [FR_POOL_MEAN] = FR_POOLING_MEAN, [FR_POOL_LAST] = FR_POOLING_LAST};
    const fr_recipe *recipe = &export->recipe;
    if (fr_encoder_fact(export->target->encoder).labels) {
        fr_gguf_put_u32(writer, ".pooling_type", FR_POOLING_RANK);
        return FR_OK;
    }
    fr_pooling pooling = recipe->mode_count ? numbers[recipe->modes[0]] : FR_POOLING_MEAN;
    if (recipe->mode_count > 1 || pooling == FR_POOLING_NONE)
        return fr_fail(FR_UNBUILT, "%s: its pooling has no form in GGUF: one of cls, mean and lasttoken has",
                       export->files->path);
    fr_gguf_put_u32(writer, ".pooling_type", (uint32_t)pooling);
    return FR_OK;
}

/* Adds the names of a classifier's labels. Readers take the number of these names for the number of the classifier's
 * scores. */
static void put_labels(const fr_export *export, fr_gguf_writer *writer) {
    size_t labels = fr_encoder_fact(export->target->encoder).labels;
    const json_t *names = json_object_get(export->files->config, "id2label");
    if (!labels) return;
    fr_gguf_put_array(writer, ".classifier.output_labels", FR_GGUF_STRING, labels);
    for (size_t i = 0; i < labels; i++) {
        char key[24], usual[32];
        snprintf(key, sizeof key, "%zu", i);
        snprintf(usual, sizeof usual, "LABEL_%zu", i);
        const json_t *name = json_object_get(names, key);
        bool named = json_is_string(name);
        fr_gguf_add_text(writer, named ? (fr_text){json_string_value(name), json_string_length(name)}
                                       : (fr_text){usual, strlen(usual)});
    }
}

fr_status fr_export_encoder_metadata(const fr_export *export, fr_gguf_writer *writer) {
    static const struct {
        const char *architecture, *model, *pre;
    } tokenizers[] = {
        {"bert", NULL, NULL},         {"nomic-bert", "bert", NULL},           {"nomic-bert-moe", NULL, NULL},
        {"jina-bert-v3", NULL, NULL}, {"modern-bert", "gpt2", "modern-bert"}, {"gemma-embedding", "llama", NULL}};
    size_t dense = 0, vocab = fr_encoder_fact(export->target->encoder).vocab;
    FR_TRY(fr_encoder_put_keys(export->target->encoder, written_types(export), export->files->path, writer));
    FR_TRY(put_pooling(export, writer));
    put_labels(export, writer);
    for (size_t i = 0; i < export->recipe.step_count; i++) {
        const fr_recipe_step *step = &export->recipe.steps[i];
        char key[32];
        if (step->kind != FR_STEP_DENSE) continue;
        snprintf(key, sizeof key, ".dense_%zu_feat_in", 2 + dense);
        fr_gguf_put_u32(writer, key, (uint32_t)step->in);
        snprintf(key, sizeof key, ".dense_%zu_feat_out", 2 + dense++);
        fr_gguf_put_u32(writer, key, (uint32_t)step->out);
    }
    for (size_t i = 0; i < sizeof tokenizers / sizeof *tokenizers; i++)
        if (strcmp(export->architecture, tokenizers[i].architecture) == 0)
            return fr_export_tokenizer(export->files,
                                       &(fr_tokenizer_form){.model = tokenizers[i].model, .pre = tokenizers[i].pre},
                                       vocab, writer);
    return FR_OK;
}
