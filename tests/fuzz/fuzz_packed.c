/* libFuzzer's target for packed files. The input is joined with the tensor data of a packed model or of a packed
 * drafter.
 *
 * In: a file up to the beginning of its tensors' data. If the file names an assistant, the drafter's data are appended,
 * otherwise the model's. Out: a crash if a sanitizer finds an error. A model that opens is run. */
#include <unistd.h>

#include "forerun_lab.h"
#include "tests/fuzz/harness.h"

#define MODEL "tests/data/models/gemma4-e"

static void write_file(const fuzz_file *file, fr_status (*write)(const char *from, FILE *out), const char *from) {
    FILE *out = fdopen(dup(file->fd), "wb");
    if (!out || write(from, out) != FR_OK || fclose(out) != 0) die(fr_last_error(), from);
}

static fr_status quantize(const char *from, FILE *out) {
    return fr_lab_quantize(from, &(fr_lab_quantization){.type = "q8_0", .pure = true}, NULL, out);
}

static fr_status pack(const char *from, FILE *out) {
    return fr_lab_pack(from, NULL, out);
}

static void make(fuzz_data *data, const char *from) {
    fuzz_file quantized = fuzz_file_new(), file = fuzz_file_new();
    write_file(&quantized, quantize, from);
    write_file(&file, pack, quantized.path);
    data->path = file.path;
    fuzz_data_read(data);
    close(quantized.fd);
    close(file.fd);
}

static void use_model(const char *path) {
    fr_checkpoint files;
    if (refused(fr_checkpoint_open(&files, path, true))) return;
    fr_model *model = fuzz_model_open(&files);
    if (model) {
        fuzz_inputs_read++;
        fuzz_run(model, NULL);
    }
    fuzz_model_close(model);
    fr_checkpoint_close(&files);
}

static void use_drafter(const char *path, const fr_model *target) {
    fr_drafter *drafter = fuzz_drafter_open(path, target);
    if (!drafter) return;
    fuzz_inputs_read++;
    fuzz_run(target, drafter);
    fr_drafter_unload(drafter);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_data data[] = {{.mark = "assistant"}, {.mark = ""}};
    static fr_checkpoint files;
    static fr_model *target;
    static fuzz_file file;
    if (!target) {
        make(&data[0], MODEL "/assistant");
        make(&data[1], MODEL);
        fuzz_open_files(&files, MODEL);
        if (!(target = fuzz_model_open(&files))) die(fr_last_error(), "");
        file = fuzz_file_new();
    }
    const fuzz_data *behind = fuzz_data_find(data, bytes, size);
    fuzz_file_write(&file, bytes, size, behind->bytes, behind->size);
    if (behind == &data[0])
        use_drafter(file.path, target);
    else
        use_model(file.path);
    return 0;
}
