/* Chooses the type of each tensor of a model that is written. It does so by llama-quantize's rules (quantize_types.c).
 *
 * In: the names of types, the user's rules, and a list of tensors. Out: the list with types. */
#ifndef FR_SRC_CONVERT_QUANTIZE_TYPES_H
#define FR_SRC_CONVERT_QUANTIZE_TYPES_H

#include "forerun_lab.h"
#include "src/convert/outputs.h"

typedef struct fr_type_rule {
    const char *pattern; /* POSIX extended regular expression, found anywhere in a name */
    size_t length;
    fr_dtype type;
} fr_type_rule;

#define FR_TYPE_RULES_MAX 64

/* llama-quantize's mixtures of types. Some types have several mixtures, which give different numbers of bits to the
 * more important tensors. */
typedef enum fr_mixture { FR_MIXTURE_M, FR_MIXTURE_S, FR_MIXTURE_L } fr_mixture;

typedef struct fr_type_choice {
    fr_dtype type;      /* type of the matrices */
    bool pure;          /* all matrices get `type` */
    fr_mixture mixture; /* used if `pure` is false */
    bool weighted;      /* an importance matrix is given, on which some mixtures depend */
    /* types of the head and of the embeddings; FR_DTYPE_COUNT: the mixture decides */
    fr_dtype output, embedding;
    fr_type_rule rules[FR_TYPE_RULES_MAX]; /* the first rule that matches a name decides */
    size_t rule_count;
} fr_type_choice;

/* Reads the name of a type, in upper or lower case. The type must be one that can be written; the name of a mixture is
 * refused. */
fr_status fr_type_read(const char *word, fr_dtype *type);

/* Gives the names of the mixtures; NULL after the last one. */
const char *fr_mixture_word(size_t index);

/* Reads types and rules from their texts. */
fr_status fr_type_choice_read(fr_type_choice *choice, const fr_lab_quantization *how);

/* Sets every output's type. A rule that matches no tensor is FR_USAGE. A matrix whose rows don't fit a type's blocks
 * gets the type to which llama-quantize falls back. */
fr_status fr_choose_types(const fr_type_choice *choice, fr_outputs *outputs);

/* Sets the types of random weights: matrices get `type`, and tensors that keep their precision get F16. Tensors with
 * given values already have their types. */
void fr_choose_plain_types(fr_dtype type, fr_outputs *outputs);

/* Notes in one line how many matrices got another type than the rules give, because the blocks of the rules' type do
 * not fill their rows. If there are no such matrices, nothing is noted. */
void fr_note_fallbacks(const fr_outputs *outputs, void (*note)(const char *line));

/* Gives general.file_type, by llama.cpp's numbers. */
uint32_t fr_file_type(const fr_type_choice *choice);

#endif
