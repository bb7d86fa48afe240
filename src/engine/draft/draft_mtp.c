/* The method `mtp`, which drafts chains with an MTP layer. The layer is in the target's own checkpoint, or in a second
 * GGUF file (families/mtp_layer.h).
 *
 * In: pairs of a hidden row of the target and a token. Out: the layer's input; pairs.c does the rest. */
#include <stdlib.h>
#include <string.h>

#include "src/engine/draft/pairs.h"
#include "src/engine/families/mtp_layer.h"
#include "src/engine/layers/parts.h"

typedef struct mtp_layer {
    fr_pair_net pairs;
    fr_mtp_layer mtp;
    fr_trunk trunk; /* the target's trunk, but with the forms of rotation that the layer's own file has */
} mtp_layer;

static void embed(const fr_model *target, const fr_mtp_layer *net, const fr_pair *pair, float *out) {
    size_t hidden = target->trunk.spec.hidden;
    if (net->blank_first && pair->position == 0)
        memset(out, 0, hidden * sizeof *out);
    else if (pair->embedding)
        memcpy(out, pair->embedding, hidden * sizeof *out);
    else if (net->embedding.data)
        fr_matrix_row(target->kernels, &net->embedding, (size_t)pair->id, 1.0f, out);
    else
        fr_model_embed(target, pair->id, out);
}

/* Computes x = eh_proj([enorm(embedding) ; hnorm(hidden)]). Some models have embedding and hidden in the other
 * order. */
static void begin_pairs(const fr_team *team, const fr_pair_batch *b, fr_activations *a) {
    const fr_model *target = b->drafter->target;
    const fr_mtp_layer *net = &((const mtp_layer *)b->drafter->net)->mtp;
    size_t hidden = target->trunk.spec.hidden, begin, end;
    float eps = target->trunk.spec.eps;
    fr_part_rows(team, b->count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *input = b->input + 2 * r * hidden;
        float *embedding = input + (net->hidden_first ? hidden : 0), *row = input + (net->hidden_first ? 0 : hidden);
        embed(target, net, &b->pairs[r], embedding);
        a->kernels->rmsnorm(embedding, embedding, net->enorm, hidden, eps);
        a->kernels->rmsnorm(row, b->pairs[r].known, net->hnorm, hidden, eps);
        fr_matrix_input_row(b->products, r, input, 2 * hidden);
    }
    fr_team_sync(team);
    fr_matrix_apply(team, b->products, &net->eh_proj, &(fr_matrix_rows){a->x, hidden, b->input, 2 * hidden, b->count});
    fr_publish_rows(team, NULL, 0);
}

/* Finds the MTP layer's tensor for a field, if the model has an equal tensor. *copy is NULL if the tensors differ, or
 * if one of the two is missing. */
static fr_status find_copy(const fr_binding *beside, const fr_tensor_naming *names, size_t field, size_t models,
                           const fr_tensor **copy) {
    fr_binding model = fr_binding_model(beside->weights, beside->trunk);
    const fr_tensor *own = fr_tensor_names_tensor(beside, names->mtp, field);
    const fr_tensor *other = fr_tensor_names_tensor(&model, fr_naming_model(names), models);
    bool same = false;
    if (own && other) FR_TRY(fr_weights_same(beside->weights, own, other, &same));
    *copy = same ? own : NULL;
    return FR_OK;
}

/* Binds the MTP layer's tensors that are not in every decoder layer. Published checkpoints contain copies of the
 * model's embedding table and head. These copies are not loaded again. */
static fr_status bind_beside(const fr_drafter *drafter, const fr_binding *beside, fr_mtp_layer *net) {
    const fr_trunk *trunk = &drafter->target->trunk;
    const fr_tensor_naming *names = drafter->target->family->names;
    const fr_tensor *copies[2]; /* the layer's copies of the table and of the head */
    FR_TRY(find_copy(beside, names, offsetof(fr_mtp_layer, embedding), offsetof(fr_trunk, embedding), &copies[0]));
    FR_TRY(find_copy(beside, names, offsetof(fr_mtp_layer, head), offsetof(fr_trunk, head), &copies[1]));
    if (copies[0]) net->embedding = trunk->embedding;
    if (copies[1]) net->head = trunk->head;
    FR_TRY(fr_tensor_names_bind(beside, names->mtp, net));
    if (!net->head.data) net->head = trunk->head;
    if (!net->norm) net->norm = trunk->norm;
    return fr_tensor_names_check_below(beside->weights, names, beside->prefix, copies);
}

/* Binds the MTP layer, which comes after the model's own layers. */
static fr_status bind(fr_drafter *drafter, fr_mtp_layer *net) {
    const fr_model *target = drafter->target;
    const fr_trunk *trunk = &target->trunk;
    const fr_tensor_naming *names = target->family->names;
    net->spec = trunk->spec.mtp;
    net->hidden_first = names->mtp_hidden_first;
    fr_binding layer = fr_binding_mtp(&drafter->weights, names, &trunk->spec, false);
    fr_binding beside = fr_binding_mtp(&drafter->weights, names, &trunk->spec, true);
    FR_TRY(fr_tensor_names_bind_layer(&layer, names, &net->layer));
    FR_TRY(bind_beside(drafter, &beside, net));
    net->packed = drafter->weights.has_packed || target->weights.has_packed;
    return FR_OK;
}

/* Checks that a file with only the MTP layer has its target's architecture. */
static fr_status check_architecture(const fr_drafter *drafter) {
    const fr_model *target = drafter->target;
    const char *architecture = fr_checkpoint_architecture(&drafter->files);
    if (fr_model_is_of(target, architecture)) return FR_OK;
    return fr_fail(FR_INPUT, "%s is an MTP layer of architecture \"%s\", and %s is of \"%s\"", drafter->files.path,
                   architecture, target->files.path, fr_checkpoint_architecture(&target->files));
}

/* Refuses tensors that nothing reads. Copies of the target's own tensors are allowed. Those within the layer's block
 * were already handled by bind_beside. */
static fr_status check_alone(const fr_drafter *drafter) {
    static const char *const copies[] = {"token_embd.weight", "output.weight", "output_norm.weight", NULL};
    fr_tensor_naming alone = *drafter->target->family->names;
    alone.extras = copies;
    return fr_tensor_names_check_read(&drafter->weights, &alone, drafter->target->trunk.spec.layers, 1);
}

/* Takes the forms of rotation from the layer's own file. In that file, the rows of queries and keys may be in another
 * order than in the target's file. */
static void take_rotary_forms(const fr_drafter *drafter, fr_trunk *trunk) {
    const fr_family *family = drafter->target->family;
    *trunk = drafter->target->trunk;
    if (!drafter->files.path || !family->gguf_neox) return;
    for (size_t i = 0; i < FR_ROPES; i++) trunk->spec.rope[i].neox = family->gguf_neox(drafter->files.gguf);
}

static fr_status mtp_load(fr_drafter *drafter) {
    mtp_layer *net = calloc(1, sizeof *net);
    if (!net) return fr_fail_memory("MTP layer", sizeof *net);
    drafter->net = net;
    if (drafter->files.path) FR_TRY(check_architecture(drafter));
    FR_TRY(bind(drafter, &net->mtp));
    if (drafter->files.path) FR_TRY(check_alone(drafter));
    take_rotary_forms(drafter, &net->trunk);
    const fr_trunk *trunk = &net->trunk;
    net->pairs = (fr_pair_net){.what = "the MTP layer's",
                               .trunk = trunk,
                               .spec = &net->mtp.spec,
                               .layer = &net->mtp.layer,
                               .layers = 1,
                               .number = trunk->spec.layers,
                               .input_width = 2 * trunk->spec.hidden,
                               .norm = net->mtp.norm,
                               .carries_norm = true,
                               .behind = true,
                               .head = &net->mtp.head,
                               .packed = net->mtp.packed,
                               .begin = begin_pairs};
    return FR_OK;
}

static void mtp_unload(fr_drafter *drafter) {
    mtp_layer *net = drafter->net;
    if (net) fr_layer_close(&net->mtp.layer);
    free(net);
}

const fr_draft_method fr_draft_mtp = {
    .name = "mtp", .reads = fr_is_mtp, .load = mtp_load, .unload = mtp_unload, FR_PAIRS_METHOD};
