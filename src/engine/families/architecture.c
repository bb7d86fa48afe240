/* Recognizes architectures by their names: see architecture.h. */
#include "src/engine/families/architecture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/gguf_folder.h"
#include "formats/map.h"
#include "src/engine/families/families.h"

/* The names of drafters' architectures. Gemma 4's assistants have the published names, and the names of llama.cpp, of
 * AtomicChat's fork and of ik_llama.cpp. EAGLE's drafters have the published names and then llama.cpp's. */
static const char *const assistants[] = {"Gemma4AssistantForCausalLM",
                                         "Gemma4UnifiedAssistantForCausalLM",
                                         "gemma4-assistant",
                                         "gemma4_assistant",
                                         "gemma4_mtp",
                                         NULL};
static const char *const eagles3[] = {
    "LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM", "Eagle3Speculator", "Eagle3DraftModel", "eagle3", NULL};
static const char *const block_drafters[] = {"DFlashDraftModel",
                                             "DFlashSpeculator",
                                             "DFlash2DraftModel",
                                             "DFlash2Speculator",
                                             "DSparkDraftModel",
                                             "DSparkSpeculator",
                                             "Qwen3DSparkModel",
                                             "Lfm2DSparkDraftModel",
                                             "LingDSparkModel",
                                             "MiniCPMDSparkModel",
                                             "MuseGlimmerAssistantModel",
                                             "dflash",
                                             NULL};
static const char *const eagles[] = {"LlamaForCausalLMEagle", "EagleLlamaForCausalLM", "EagleModel", "eagle", NULL};

const char *fr_drafter_architecture(size_t index) {
    static const char *const *const kinds[] = {assistants, eagles3, eagles, block_drafters};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (const char *const *name = kinds[i]; *name; name++)
            if (index-- == 0) return *name;
    return NULL;
}

/* Gives the first of config.json's "architectures", or NULL if there is none. */
static const char *first_architecture(const json_t *config) {
    const char *name = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    return name && *name ? name : NULL;
}

const char *fr_checkpoint_model_type(const fr_checkpoint *files) {
    if (files->gguf || first_architecture(files->config)) return NULL;
    const char *type = json_string_value(json_object_get(files->config, "model_type"));
    const json_t *text = json_object_get(files->config, "text_config");
    return type && *type ? type : json_string_value(json_object_get(text, "model_type"));
}

/* Returns true if a folder has this tensor, whatever its type is. */
static bool has(const fr_checkpoint *files, const char *tensor) {
    if (files->gguf) return false;
    return fr_tensors_find(&files->tensors, tensor) || fr_tensors_find(&files->unread, tensor);
}

/* Gives the publisher's name of a model for which transformers has no class. transformers saves such a model with the
 * name of another model's class. It saves Sarvam's tensors by their published names, unless the user asks for other
 * names. A folder with the names of GLM-4.5's tensors is read as GLM-4.5. */
static const char *published_name(const fr_checkpoint *files, const char *name) {
    const char *type = json_string_value(json_object_get(files->config, "model_type"));
    if (!type) return name;
    if (strcmp(name, "LlamaForCausalLM") == 0 && strcmp(type, "exaone") == 0) return "ExaoneForCausalLM";
    bool sarvam = strcmp(name, "Glm4MoeForCausalLM") == 0 && strcmp(type, "sarvam_moe") == 0;
    return sarvam && has(files, "model.word_embeddings.weight") ? "SarvamMoEForCausalLM" : name;
}

const char *fr_checkpoint_architecture(const fr_checkpoint *files) {
    static const char *const stands_for[][2] = {
#define FR_MODEL_TYPE(type, architecture) {type, architecture},
#include "src/engine/families/model_types.def"
#undef FR_MODEL_TYPE
    };
    if (files->gguf) return files->gguf->architecture;
    const char *name = first_architecture(files->config), *type = fr_checkpoint_model_type(files);
    if (name) return published_name(files, name);
    if (!type) return "";
    for (size_t i = 0; i < sizeof stands_for / sizeof *stands_for; i++)
        if (strcmp(stands_for[i][0], type) == 0) return stands_for[i][1];
    return type;
}

bool fr_architecture_in(const char *const *names, const char *architecture) {
    for (; *names; names++)
        if (strcmp(*names, architecture) == 0) return true;
    return false;
}

bool fr_is_gemma4_unified(const fr_checkpoint *files) {
    return !files->gguf && strncmp(fr_checkpoint_architecture(files), "Gemma4Unified", 13) == 0;
}

bool fr_is_assistant(const fr_checkpoint *files) {
    return fr_architecture_in(assistants, fr_checkpoint_architecture(files));
}

bool fr_is_block_drafter(const fr_checkpoint *files) {
    return fr_architecture_in(block_drafters, fr_checkpoint_architecture(files));
}

bool fr_is_eagle3(const fr_checkpoint *files) {
    if (fr_is_block_drafter(files)) return false;
    return fr_architecture_in(eagles3, fr_checkpoint_architecture(files)) ||
           has(files, "midlayer.hidden_norm.weight") || has(files, "layers.0.hidden_norm.weight");
}

/* Recognizes EAGLE-1 drafters. Files may have neither a name of EAGLE nor the tensor fc. They are still an EAGLE-1
 * drafter's if they have layers and no norm after the last layer. A decoder that was saved without its head would have
 * that norm. */
bool fr_is_eagle(const fr_checkpoint *files) {
    if (fr_is_eagle3(files) || fr_is_block_drafter(files)) return false;
    return fr_architecture_in(eagles, fr_checkpoint_architecture(files)) || has(files, "fc.weight") ||
           (has(files, "layers.0.self_attn.q_proj.weight") && !has(files, "norm.weight"));
}

bool fr_is_mtp(const fr_checkpoint *files) {
    int64_t layers;
    if (!files->gguf || fr_is_assistant(files)) return false;
    fr_status status = fr_gguf_int(files->gguf, ".nextn_predict_layers", 0, INT64_MAX, 0, &layers);
    bool whole = false;
    for (size_t i = 0; i < files->tensors.count; i++) whole |= strncmp(files->tensors.items[i].name, "blk.0.", 6) == 0;
    return status == FR_OK && layers > 0 && !whole;
}

bool fr_is_drafter(const fr_checkpoint *files) {
    return fr_is_assistant(files) || fr_is_block_drafter(files) || fr_is_eagle3(files) || fr_is_eagle(files) ||
           fr_is_mtp(files);
}

/* Models that are known but not supported yet. When support for a model is added, its line is removed. A line has the
 * names in config.json and then those in GGUF, separated by blanks. A folder of such a model is refused before its
 * weights are read. */
static const struct {
    const char *names, *what;
} known[] = {
    {"Qwen4ExpForConditionalGeneration Qwen4ExpForCausalLM qwen4exp", "Qwen3.8-Flash-Next"},
    {"DeepseekV4ForCausalLM deepseek4", "DeepSeek-V4"},
    {"Glm4vMoeForConditionalGeneration", "GLM-4.5V"},
    {"MiMoV2FlashForCausalLM mimo2", "MiMo-V2"},
    {"Step3p5ForCausalLM step35", "Step-3.5"},
    {"BailingMoeForCausalLM bailingmoe", "Ling of before 2.0"},
    {"BailingMoeV2_5ForCausalLM BailingMoeLinearForCausalLM", "Ling 2.5 and 2.6"},
    {"BailingMoeV3VLForConditionalGeneration", "Ling 3.0, which sees"},
    {"HYV3ForCausalLM", "Hy 3"},
    {"KimiK25ForConditionalGeneration", "Kimi-K2.5, which sees"},
    {"MllamaForConditionalGeneration mllama", "Llama 3.2, which sees"},
    {"Gemma3nForConditionalGeneration gemma3n", "Gemma 3n"},
    {"Qwen2VLForConditionalGeneration", "Qwen2-VL"},
    {"InternLM2ForCausalLM internlm2", "InternLM 2"},
    {"AfmoeForCausalLM afmoe", "Trinity"},
    {"NanoChatForCausalLM", "nanochat"},
    {"GPTBigCodeForCausalLM", "StarCoder of before 2"},
    {"GPTNeoForCausalLM", "GPT-Neo"},
    {"DbrxForCausalLM dbrx", "DBRX"},
    {"MiniCPMForCausalLM minicpm", "MiniCPM"},
    {"MambaForCausalLM mamba", "Mamba"},
    {"JambaForCausalLM jamba", "Jamba"},
    {"Apertus1p5ForConditionalGeneration Apertus1p5TextForCausalLM", "Apertus 1.5, which draws; as Apertus"},
    {"AriaForConditionalGeneration AriaTextForCausalLM", "Aria, which sees; a mixture as Llama"},
    {"AXK1ForCausalLM", "A.X K1; as DeepSeek-V3"},
    {"AXK2ForCausalLM", "A.X K2; as DeepSeek-V3.2"},
    {"BeamForCausalLM", "Beam; as DeepSeek-V3.2"},
    {"BioGptForCausalLM", "BioGPT; as OPT"},
    {"BitNetForCausalLM bitnet", "BitNet, of ternary weights; as Llama"},
    {"BltForCausalLM", "BLT, whose patches are bytes; as Llama"},
    {"CodeGenForCausalLM codegen", "CodeGen; as GPT-J"},
    {"CohereCompassForConditionalGeneration CohereCompassForCausalLM", "Compass, which sees; as Cohere 2"},
    {"CpmAntForCausalLM", "CPM-Ant; with T5's distances"},
    {"CTRLLMHeadModel", "CTRL; as GPT-2"},
    {"DiffLlamaForCausalLM", "DiffLlama, whose attention is a difference; as Llama"},
    {"DiffusionGemmaForBlockDiffusion", "DiffusionGemma, which writes blocks by diffusion; as Gemma 4"},
    {"DogeForCausalLM", "Doge, whose attention has a mask of its own; as Llama"},
    {"DoryForCausalLM", "Dory; as Llama 4"},
    {"Dots3NoteForConditionalGeneration Dots3NoteForCausalLM", "dots 3, which sees and hears; as DeepSeek-V3.2"},
    {"FalconMambaForCausalLM falcon-mamba", "Falcon Mamba; as Mamba"},
    {"FlintForCausalLM", "Flint; as Qwen3-MoE"},
    {"FuyuForCausalLM", "Fuyu, which sees; as Persimmon"},
    {"GPTNeoXJapaneseForCausalLM", "GPT-NeoX Japanese; as GPT-NeoX"},
    {"HrmTextForCausalLM hrm-text", "HRM, whose layers run again and again; as Llama"},
    {"HYV4ForCausalLM HYV4VLForConditionalGeneration hy-v4", "Hy 4; as DeepSeek-V4"},
    {"InklingForCausalLM InklingForConditionalGeneration", "Inkling, which hears and sees; as Qwen3-Next"},
    {"Inkling2ForCausalLM Inkling2ForConditionalGeneration", "Inkling 2, which sees; as Qwen3-Next"},
    {"Inkling2LoopForCausalLM Inkling2LoopForConditionalGeneration", "Inkling 2 Loop, which sees; as Qwen3-Next"},
    {"JetMoeForCausalLM", "JetMoE, whose attention is a mixture too; as Mixtral"},
    {"Kolibri1ForCausalLM", "Kolibri; as EXAONE 4 and DeepSeek-V3"},
    {"LaraMiniForCausalLM", "Lara Mini; as Qwen3-Next"},
    {"LongcatFlashForCausalLM", "LongCat-Flash; as DeepSeek-V3"},
    {"MiniMaxForCausalLM", "MiniMax-01, with lightning attention; as Mixtral"},
    {"MiniMaxM3SparseForConditionalGeneration MiniMaxM3VLForCausalLM", "MiniMax-M3, which sees; as MiniMax-M2"},
    {"Mistral4ForCausalLM mistral4", "Mistral Small 4; as DeepSeek-V3"},
    {"MistralLarge4ForConditionalGeneration", "Mistral Large 4, which sees; as DeepSeek-V3.2"},
    {"ModernBertDecoderForCausalLM", "ModernBERT's decoder; as ModernBERT"},
    {"MuseSparkForConditionalGeneration", "Muse-Spark, which sees and hears; as Muse-Glimmer"},
    {"NemotronH_Omni_Reasoning_V3", "Nemotron Omni, which sees and hears; as Nemotron-H"},
    {"OlmoHybridForCausalLM", "OLMo Hybrid; as OLMo 3 and Qwen3-Next"},
    {"OpenAIGPTLMHeadModel", "GPT-1; as GPT-2"},
    {"PersimmonForCausalLM persimmon", "Persimmon; as StableLM"},
    {"Phi4MultimodalForCausalLM", "Phi-4-multimodal, which sees and hears; as Phi-3"},
    {"RecurrentGemmaForCausalLM", "RecurrentGemma; as Gemma and Mamba"},
    {"RwkvForCausalLM rwkv6 rwkv7", "RWKV, which is recurrent"},
    {"Step3p7ForConditionalGeneration", "Step-3.7, which sees; as Step-3.5"},
    {"XGLMForCausalLM", "XGLM; as OPT"},
    {"XLNetLMHeadModel XLMWithLMHeadModel ReformerModelWithLMHead", "a model of before GPT-2's kind"},
    {"xLSTMForCausalLM", "xLSTM, which is recurrent"},
    {"ZambaForCausalLM Zamba2ForCausalLM", "Zamba; as Bamba"},
    {"ZayaForCausalLM", "ZAYA; as Qwen3-MoE"},
    {"Glm5NextForConditionalGeneration", "GLM-5 Next, which sees; as GLM-5"},
    {"DebertaV2Model DebertaV2ForSequenceClassification DebertaV2ForMaskedLM", "DeBERTa, an encoder"},
    {"AlbertModel AlbertForSequenceClassification", "ALBERT, an encoder"},
    {"ElectraModel ElectraForSequenceClassification ElectraForPreTraining", "ELECTRA, an encoder"},
    {"EuroBertModel EuroBertForMaskedLM eurobert", "EuroBERT, an encoder"},
    {"JinaBertModel JinaBertForMaskedLM JinaBertForSequenceClassification", "Jina's BERT"},
    {"XLMRobertaLoRA", "Jina's embeddings of version 3 with adapters"},
    {"T5EncoderModel t5encoder", "T5's encoder"},
    {"T5ForConditionalGeneration t5", "T5, an encoder and a decoder"},
};

static bool lists(const char *names, const char *name) {
    size_t length = strlen(name);
    for (const char *at = names; length && (at = strstr(at, name)); at += length) {
        bool begins = at == names || at[-1] == ' ';
        if (begins && (at[length] == ' ' || !at[length])) return true;
    }
    return false;
}

fr_status fr_check_built(const fr_checkpoint *files) {
    const char *architecture = fr_checkpoint_architecture(files);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (lists(known[i].names, architecture)) return fr_family_refuse(files, known[i].what);
    if (lists("Gemma4DSparkModel XPressSpeculator XPressDraftModel Qwen3XPressModel PEagleSpeculator PEagleDraftModel",
              architecture))
        return fr_fail(FR_UNBUILT, "%s: architecture \"%s\" is a drafter that is not built yet", files->path,
                       architecture);
    return FR_OK;
}

static bool has_file(const char *folder, const char *name) {
    char *path = fr_path_join(folder, name);
    bool there = path && fr_file_exists(path);
    free(path);
    return there;
}

/* Refuses a folder by its config.json alone, in two cases. The first is that the architecture is known but not
 * supported. The second is that the architecture is unknown and the folder has no file of weights, from which more
 * could be learned. */
static fr_status check_config(const fr_checkpoint *files) {
    const char *architecture = fr_checkpoint_architecture(files);
    FR_TRY(fr_check_built(files));
    bool heard_of = !*architecture || fr_family_named(architecture) || fr_is_drafter(files);
    if (heard_of || has_file(files->path, "model.safetensors") || has_file(files->path, "model.safetensors.index.json"))
        return FR_OK;
    char hint[160];
    fr_family_hint(files, hint, sizeof hint);
    return fr_fail(FR_INPUT,
                   "%s: %s \"%.60s\" is not known, and there is neither model.safetensors nor "
                   "model.safetensors.index.json%s",
                   files->path, fr_checkpoint_model_type(files) ? "model_type" : "architecture", architecture, hint);
}

/* Describes the target for which a drafter was made, by the folder's config.json. The text has the target's name, or
 * its width and number of ids. The text is empty if config.json has none of these. */
static void describe_target(const fr_checkpoint *files, char *text, size_t size) {
    const json_t *config = files->config, *layers = json_object_get(config, "transformer_layer_config");
    const json_t *verifier = json_object_get(json_object_get(config, "speculators_config"), "verifier");
    const char *name = json_string_value(json_object_get(verifier, "name_or_path"));
    const json_t *from = layers ? layers : config;
    json_int_t width = json_integer_value(json_object_get(from, "hidden_size"));
    json_int_t ids = json_integer_value(json_object_get(from, "vocab_size"));
    *text = 0;
    if (name && *name)
        snprintf(text, size, ", %.100s", name);
    else if (fr_is_block_drafter(files) && width > 0 && ids > 0)
        snprintf(text, size, ", a model of width %lld with %lld ids", (long long)width, (long long)ids);
}

fr_status fr_refuse_drafter(const fr_checkpoint *files) {
    char target[160] = "";
    if (!fr_is_drafter(files)) return FR_OK;
    if (!files->gguf) describe_target(files, target, sizeof target);
    return fr_fail_about(FR_OPT_SPEC_TYPE, FR_INPUT, "%s is a drafter (%s), which is opened for its target%s",
                         files->path, fr_checkpoint_architecture(files), target);
}

static fr_status open_files(fr_checkpoint *files, const char *path, bool use_mmap, bool as_model) {
    char *place;
    struct stat info;
    FR_TRY(fr_gguf_folder_place(path, &place));
    fr_status status = FR_OK;
    if (stat(place, &info) == 0 && S_ISDIR(info.st_mode)) {
        status = fr_checkpoint_open_config(files, place);
        if (status == FR_OK && as_model) status = fr_refuse_drafter(files);
        if (status == FR_OK) status = check_config(files);
        fr_checkpoint_close(files);
    }
    if (status == FR_OK) status = fr_checkpoint_open(files, place, use_mmap);
    free(place);
    return status;
}

fr_status fr_open_files(fr_checkpoint *files, const char *path, bool use_mmap) {
    return open_files(files, path, use_mmap, false);
}

fr_status fr_open_model_files(fr_checkpoint *files, const char *path, bool use_mmap) {
    return open_files(files, path, use_mmap, true);
}
