//! The builders, generated from the tables of options: do not edit. `UPDATE=1 cargo test builders` writes it anew.

/// Builders of `dataset::…`.
pub mod dataset {
    use super::super::*;
    use std::sync::Arc;

    builders! { "dataset", Arc<crate::dataset::Dataset>;
        /// 1797 handwritten digits of 8×8 pixels in 10 classes, bundled with the program.
        /// Source: Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998, test part (doi 10.24432/C50P49), licence CC BY 4.0.
        /// A fifth of every class is the test split unless `test` says otherwise; it does not depend on `per_class`. `size: 16` resizes to 16×16 pixels, the 256 inputs of the networks of Baldock and Marzari, who use 5, 50 and 500 examples per class (at most about 140 are available here).
        Digits = "digits"() of crate::dataset::REGISTRY {
            /// Number of training examples kept of every class, after test and validation rows are set aside. (integer, ≥ 1; if absent: all)
            per_class = "per_class": Count,
            /// Fraction of the rows kept for the test split, the same fraction of every class; 0 for no test split. (number, 0 ≤ x < 1; default `0.2`)
            test = "test": Number,
            /// Pixels along a side: 8 as recorded, or 16 by bilinear interpolation, which keeps the mean. (integer, 8 … 16; default `8`)
            size = "size": Count,
            /// Scaling of pixels: "unit" divides by 16, to 0 … 1; "standard" gives every pixel mean 0 and variance 1 over the training split, and 0 where it is constant; "none" keeps 0 … 16. ("unit" · "standard" · "none"; default `unit`)
            scale = "scale": OneOf<choices::Scale>,
            /// Fraction of the training rows moved to a validation split, the same fraction of every class; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// Random spin vectors: each example is the ±1 vector of its class with every component flipped at random.
        /// Reference vectors v(k) ∈ {±1}^dim and labels y are uniform; component i of an example is v_i(y) with probability 1 - flip and -v_i(y) with probability flip, all independent (Zambon et al., pseudo-Langevin, section II.1, eq. 2). With the defaults about a tenth of the examples are nearer to another class than to their own (section III).
        /// Row i of a split depends on the seed, dim, classes and flip only: a larger split starts with the rows of a smaller one. One byte per component.
        SpinVectors = "spin_vectors"() of crate::dataset::REGISTRY {
            /// Components of a vector, d in the paper. (integer, ≥ 1; default `100`)
            dim = "dim": Count,
            /// Number of classes, K in the paper. (integer, 2 … 65535; default `10`)
            classes = "classes": Count,
            /// Probability of flipping a component, p_f in the paper. (number, 0 ≤ x ≤ 1; default `0.355`)
            flip = "flip": Number,
            /// Number of training examples; P = 5N in the paper, here for N = 11160 parameters. (integer, 1 … 4294967295; default `55800`)
            train = "train": Count,
            /// Number of test examples, of the same reference vectors; about 0.18 P in the paper; 0 for no test split. (integer, 0 … 4294967295; default `10000`)
            test = "test": Count,
            /// Fraction of the training rows moved to a validation split, the same fraction of every class; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// Images and labels in the IDX format: MNIST, Fashion-MNIST and their relatives.
        /// `path` is a folder with the four files train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, also with a dot before "idx" and with .gz; or each file is named by its own option. Whether a file is gzipped is detected from its content.
        /// `project: d` replaces image x by d spins sign(Σ_ij x_ij P_ijk) with one random P ∈ {±1}, where sign(0) = +1 (Zambon et al., pseudo-Langevin, section III, eq. 28, with d = 100 for Fashion-MNIST). Format: yann.lecun.com/exdb/mnist.
        Idx = "idx"() of crate::dataset::REGISTRY {
            /// Folder with the four files. (string; if absent: every file is named)
            path = "path": Words,
            /// File of training images. (string; if absent: in the folder)
            train_images = "train_images": Words,
            /// File of training labels. (string; if absent: in the folder)
            train_labels = "train_labels": Words,
            /// File of test images. (string; if absent: in the folder, if one is given)
            test_images = "test_images": Words,
            /// File of test labels. (string; if absent: in the folder, if one is given)
            test_labels = "test_labels": Words,
            /// Scaling of pixels: "unit" divides by 255, to 0 … 1; "standard" gives every pixel mean 0 and variance 1 over the training split, and 0 where it is constant; "none" keeps 0 … 255. ("unit" · "standard" · "none"; default `unit`)
            scale = "scale": OneOf<choices::Scale>,
            /// Pixels along a side to which images are resized, bilinear; 16 for the 256 inputs of Baldock & Marzari. Not with `project`. (integer, 1 … 1024; if absent: as in the files)
            resize = "resize": Count,
            /// Number of spins to project an image on; one byte each. The first spins do not depend on how many there are. (integer, 1 … 65536; if absent: pixels are the inputs)
            project = "project": Count,
            /// Number of training examples, from the start of the file. (integer, ≥ 1; if absent: all)
            train = "train": Count,
            /// Number of test examples, from the start of the file. (integer, ≥ 1; if absent: all)
            test = "test": Count,
            /// Number of training examples kept of every class, after test and validation rows are set aside. (integer, ≥ 1; if absent: all)
            per_class = "per_class": Count,
            /// Fraction of the training rows moved to a validation split, the same fraction of every class; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// A table with one example per line, from a text file (also gzipped).
        /// Columns that are not targets are inputs. In classification the label column holds whole numbers 0, 1, 2, … or words, which are numbered in alphabetical order (`data.class_names`); in regression one or more columns are targets. Inputs are finite numbers, but for the columns that `categories` and `dates` name. What words and dates stand for, and what takes the place of missing cells, is shown with the data set, and kept for new rows: `predict` takes them as the file has them.
        Csv = "csv"(path = "path": Anything) of crate::dataset::REGISTRY {
            /// Column of the label or target: its name, or its number from 0; negative numbers count from the end. (column name or number; if absent: the last column)
            label = "label": Anything,
            /// Columns of the targets, for regression of several values. (array of column names or numbers; if absent: the column `label`)
            targets = "targets": Anything,
            /// Columns of the inputs; other columns may hold anything. (array of column names or numbers; if absent: all other columns, but for a first one without a name, the index of pandas)
            inputs = "inputs": Anything,
            /// Inputs that are words, or numbers that only name something: each word of the file becomes an input that is 1 where it stands and 0 elsewhere, in alphabetical order. (array of column names or numbers; if absent: none)
            categories = "categories": Anything,
            /// Inputs that are dates, as 2024-03-01, 2024-03-01 12:30 or 2024-03-01T12:30:00+02:00: they become days since the first date of the file, with the part of the day. (array of column names or numbers; if absent: none)
            dates = "dates": Anything,
            /// What to do with a cell that is empty, NA, N/A, NaN, null or ?: "refuse" is an error with its line · "drop" leaves the line out · "mean" and "median" put those of the column over the training rows there, and a number itself, into numbers and dates among the inputs. A map has a rule for each column, and "*" for the others: `missing: #{ age: "median", colour: "unknown", "*": "drop" }`; in a column of `categories` any other text is the word that stands there. (rule, or a map of rules by column; if absent: "refuse")
            missing = "missing": Anything,
            /// Column that says to which split a line belongs: train, test or validation; in the place of `test`. (column name or number; if absent: none)
            split = "split": Anything,
            /// Column of weights, numbers from 0 that multiply the loss of each line (see `data.weigh`). (column name or number; if absent: all 1)
            weights = "weights": Anything,
            /// A second file with the same columns, or several, which is the test split; in the place of `test`. (path, or array of paths; if absent: none)
            test_path = "test_path": Anything,
            /// What the targets are: class labels or numbers. ("classification" · "regression"; default `classification`)
            task = "task": OneOf<choices::Task>,
            /// Fraction of the rows kept for the test split, the same fraction of every class; 0 for no test split. (number, 0 ≤ x < 1; default `0.2`)
            test = "test": Number,
            /// Fraction of the training rows moved to a validation split, the same fraction of every class; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Scaling of every input column by the training split: "unit" to 0 … 1, "standard" to mean 0 and variance 1 (constant columns become 0 in both), or "none". ("unit" · "standard" · "none"; default `none`)
            scale = "scale": OneOf<choices::Scale>,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
            /// Whether the first line holds column names; "auto": if none of its cells is a number. ("auto" · "yes" · "no"; default `auto`)
            header = "header": OneOf<choices::Header>,
            /// The character between cells; "tab" for the tab character. (string; default `","`)
            separator = "separator": Words,
        }
        /// A table with one example per row, from a Parquet file as pandas, Polars and Arrow write it.
        /// Columns and options are those of `dataset::csv`; nulls are missing cells. Columns hold numbers, booleans (0 and 1), dates, times or text; lists are not read. The index that pandas writes as `__index_level_0__` is left out. Compression: none, snappy, zstd, gzip or LZ4. Needs a program that was built with `--features parquet`.
        Parquet = "parquet"(path = "path": Anything) of crate::dataset::REGISTRY {
            /// Column of the label or target: its name, or its number from 0; negative numbers count from the end. (column name or number; if absent: the last column)
            label = "label": Anything,
            /// Columns of the targets, for regression of several values. (array of column names or numbers; if absent: the column `label`)
            targets = "targets": Anything,
            /// Columns of the inputs; other columns may hold anything. (array of column names or numbers; if absent: all other columns, but for a first one without a name, the index of pandas)
            inputs = "inputs": Anything,
            /// Inputs that are words, or numbers that only name something: each word of the file becomes an input that is 1 where it stands and 0 elsewhere, in alphabetical order. (array of column names or numbers; if absent: none)
            categories = "categories": Anything,
            /// Inputs that are dates, as 2024-03-01, 2024-03-01 12:30 or 2024-03-01T12:30:00+02:00: they become days since the first date of the file, with the part of the day. (array of column names or numbers; if absent: none)
            dates = "dates": Anything,
            /// What to do with a cell that is empty, NA, N/A, NaN, null or ?: "refuse" is an error with its line · "drop" leaves the line out · "mean" and "median" put those of the column over the training rows there, and a number itself, into numbers and dates among the inputs. A map has a rule for each column, and "*" for the others: `missing: #{ age: "median", colour: "unknown", "*": "drop" }`; in a column of `categories` any other text is the word that stands there. (rule, or a map of rules by column; if absent: "refuse")
            missing = "missing": Anything,
            /// Column that says to which split a line belongs: train, test or validation; in the place of `test`. (column name or number; if absent: none)
            split = "split": Anything,
            /// Column of weights, numbers from 0 that multiply the loss of each line (see `data.weigh`). (column name or number; if absent: all 1)
            weights = "weights": Anything,
            /// A second file with the same columns, or several, which is the test split; in the place of `test`. (path, or array of paths; if absent: none)
            test_path = "test_path": Anything,
            /// What the targets are: class labels or numbers. ("classification" · "regression"; default `classification`)
            task = "task": OneOf<choices::Task>,
            /// Fraction of the rows kept for the test split, the same fraction of every class; 0 for no test split. (number, 0 ≤ x < 1; default `0.2`)
            test = "test": Number,
            /// Fraction of the training rows moved to a validation split, the same fraction of every class; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Scaling of every input column by the training split: "unit" to 0 … 1, "standard" to mean 0 and variance 1 (constant columns become 0 in both), or "none". ("unit" · "standard" · "none"; default `none`)
            scale = "scale": OneOf<choices::Scale>,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// Inputs and targets from arrays or tensors of a script.
        ///
        /// Inputs are \[rows, columns], or \[rows] for a single column, or images \[rows, height, width], which keep their shape; targets \[rows, width] or \[rows], real numbers or, with `classes: true`, labels 0, 1, 2, ….
        Arrays = "arrays"(inputs = "inputs": Anything, targets = "targets": Anything) of crate::dataset::REGISTRY {
            /// Whether targets are labels of classes. (true or false; default `false`)
            classes = "classes": Flag,
            /// Fraction of the rows for the test split. (number, 0 ≤ x < 1; default `0`)
            test = "test": Number,
            /// Fraction of the training rows moved to a validation split, the same fraction of every class; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Scaling of every input column by the training split: "unit" to 0 … 1, "standard" to mean 0 and variance 1 (constant columns become 0 in both), or "none". ("unit" · "standard" · "none"; default `none`)
            scale = "scale": OneOf<choices::Scale>,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// NumPy arrays from an .npz archive, as numpy.savez or numpy.savez_compressed write it.
        /// Arrays: x_train and y_train, and x_test and y_test if there is a test split. An x has one row per example; further dimensions are its shape (`data.shape`). A y of whole numbers holds class labels 0, 1, 2, …; a y of floating-point numbers holds regression targets, \[rows] or \[rows, width]. Types: f2 f4 f8, i1 i2 i4 i8, u1 u2 u4 u8, of either byte order; C or Fortran order. An x of type u1, or of i1 with values ±1 only, is kept as one byte per component.
        Npz = "npz"(path = "path": Words) of crate::dataset::REGISTRY {
            /// Name of the array of training inputs. (string; default `x_train`)
            x_train = "x_train": Words,
            /// Name of the array of training targets. (string; default `y_train`)
            y_train = "y_train": Words,
            /// Name of the array of test inputs. (string; if absent: x_test, if it is there)
            x_test = "x_test": Words,
            /// Name of the array of test targets. (string; if absent: y_test, if it is there)
            y_test = "y_test": Words,
            /// Fraction of the rows of x_train for the test split, the same fraction of every class, if there are no test arrays. (number, 0 ≤ x < 1; default `0`)
            test = "test": Number,
            /// Fraction of the training rows moved to a validation split, the same fraction of every class; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Scaling of every input column by the training split: "unit" to 0 … 1, "standard" to mean 0 and variance 1 (constant columns become 0 in both), or "none". ("unit" · "standard" · "none"; default `none`)
            scale = "scale": OneOf<choices::Scale>,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// NumPy arrays, each in its .npy file, as numpy.save writes them.
        /// Inputs and targets are those that dataset::npz describes. With `mapped: true` inputs are read from the file as they are needed.
        Npy = "npy"(x_train = "x_train": Words, y_train = "y_train": Words) of crate::dataset::REGISTRY {
            /// File of the test inputs. (string; if absent: none)
            x_test = "x_test": Words,
            /// File of the test targets. (string; if absent: none)
            y_test = "y_test": Words,
            /// Whether inputs stay in the file and are read when a batch needs them, for data larger than the memory; targets are always in memory. The minibatches are those of data in memory, to the last bit. The file must not be changed while a run goes on; on accelerators this does not work. (true or false; default `false`)
            mapped = "mapped": Flag,
            /// Fraction of the rows of x_train for the test split, the same fraction of every class, if there are no test arrays. (number, 0 ≤ x < 1; default `0`)
            test = "test": Number,
            /// Fraction of the training rows moved to a validation split, the same fraction of every class; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Scaling of every input column by the training split: "unit" to 0 … 1, "standard" to mean 0 and variance 1 (constant columns become 0 in both), or "none". ("unit" · "standard" · "none"; default `none`)
            scale = "scale": OneOf<choices::Scale>,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// Tensors of a safetensors file, as PyTorch's `safetensors.torch.save_file` writes it.
        /// Tensors: x_train and y_train, and x_test and y_test if there is a test split, as dataset::npz describes them; bf16 and f16 are read too. With `mapped: true` inputs are read from the file as they are needed.
        Safetensors = "safetensors"(path = "path": Words) of crate::dataset::REGISTRY {
            /// Name of the array of training inputs. (string; default `x_train`)
            x_train = "x_train": Words,
            /// Name of the array of training targets. (string; default `y_train`)
            y_train = "y_train": Words,
            /// Name of the array of test inputs. (string; if absent: x_test, if it is there)
            x_test = "x_test": Words,
            /// Name of the array of test targets. (string; if absent: y_test, if it is there)
            y_test = "y_test": Words,
            /// Whether inputs stay in the file and are read when a batch needs them, for data larger than the memory; targets are always in memory. The minibatches are those of data in memory, to the last bit. The file must not be changed while a run goes on; on accelerators this does not work. (true or false; default `false`)
            mapped = "mapped": Flag,
            /// Fraction of the rows of x_train for the test split, the same fraction of every class, if there are no test arrays. (number, 0 ≤ x < 1; default `0`)
            test = "test": Number,
            /// Fraction of the training rows moved to a validation split, the same fraction of every class; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Scaling of every input column by the training split: "unit" to 0 … 1, "standard" to mean 0 and variance 1 (constant columns become 0 in both), or "none". ("unit" · "standard" · "none"; default `none`)
            scale = "scale": OneOf<choices::Scale>,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// Repeated random segments of tokens: what comes next can be copied from an earlier place, which requires induction heads.
        ///
        /// A row has context + 1 tokens: a segment of ℓ tokens that are uniform in 0..vocabulary and independent, repeated from its beginning until the row is full (Olsson et al. 2022, "In-context learning and induction heads", have such rows with one repeat). Inputs are its first context tokens, the label at each position is the next one. ℓ is uniform in context/4 … context/2 for every row, so that no fixed distance finds the earlier place. The labels within the first segment cannot be predicted: there no model has, on average over new rows, a loss below ln(vocabulary).
        /// Row i of a split depends on the seed, vocabulary, context and segment only: a larger split starts with the rows of a smaller one. Two bytes per token.
        Induction = "induction"() of crate::dataset::REGISTRY {
            /// Number of different tokens. (integer, 2 … 65536; default `64`)
            vocabulary = "vocabulary": Count,
            /// Input tokens of a row; each has a label. (integer, 2 … 1048576; default `64`)
            context = "context": Count,
            /// Tokens of a segment ℓ, the same for all rows. (integer, ≥ 1; if absent: uniform in context/4 … context/2, for every row)
            segment = "segment": Count,
            /// Number of training rows. (integer, 1 … 4294967295; default `2000`)
            train = "train": Count,
            /// Number of test rows; 0 for no test split. (integer, 0 … 4294967295; default `500`)
            test = "test": Count,
            /// Fraction of the training rows moved to a validation split, chosen at random; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// The tokens, bytes or characters of a text file (also gzipped): rows of a fixed number of them, and the next one at each position.
        ///
        /// The rows are cut from the file one after the other, and the label at each position is the token after it: every token but the first is predicted once. An incomplete row at the end is left out. The rows of the test split are chosen at random (`test: 0` keeps all of them, in order, in the training split). Tokens are bytes (vocabulary 256), or the different characters of the file, numbered in Unicode order: then the vocabulary, `dataset.classes`, is their number, and the summary lists them. With `tokenizer` they are those of a tokenizer.json, as the Python package tokenizers gives them for the whole text without special tokens at its ends; special tokens within the text, as "<|endoftext|>" between documents, count as such. A model::pretrained, which may know more tokens than its tokenizer, needs `vocabulary: net.vocabulary`.
        Text = "text"(path = "path": Words) of crate::dataset::REGISTRY {
            /// Input tokens of a row; each has a label. (integer, 1 … 1048576; default `64`)
            context = "context": Count,
            /// What a token is: a character of UTF-8 text, or a byte of any file. ("characters" · "bytes"; default `characters`)
            level = "level": OneOf<choices::Level>,
            /// The file tokenizer.json, or a folder that has it. (string; if absent: by level)
            tokenizer = "tokenizer": Words,
            /// Number of different tokens, which are 0, 1, 2, …: at least those that there are. (integer, 2 … 16777216; if absent: as many as there are)
            vocabulary = "vocabulary": Count,
            /// Fraction of the rows kept for the test split, chosen at random; 0 for no test split. (number, 0 ≤ x < 1; default `0.2`)
            test = "test": Number,
            /// Fraction of the training rows moved to a validation split, chosen at random; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// Tokens from an array of whole numbers in an .npy, .npz or safetensors file, a column of a Parquet file, or raw numbers in a .bin file, and the next token at each position.
        ///
        /// An array \[rows, length] holds texts of one length, an array \[length] a single one, as raw numbers and a column of numbers do; each list of a column of lists is a text. Of a text, row i has the tokens from i·context on, and as label at each position the token after it; an incomplete row at its end is left out. The type of the file is detected from its content, but for raw numbers, which are those of a file called .bin (nanoGPT's) or where `dtype` is given. Parquet needs a program that was built with `--features parquet`. A model::pretrained needs `vocabulary: net.vocabulary`.
        Tokens = "tokens"(path = "path": Words) of crate::dataset::REGISTRY {
            /// Name of the array in an .npz or safetensors file, or of the column of a Parquet file. (string; if absent: the only array in the file)
            array = "array": Words,
            /// Type of raw numbers, little-endian. ("uint16" · "uint32"; if absent: uint16 of a file called .bin)
            dtype = "dtype": OneOf<choices::Dtype>,
            /// Input tokens of a row; each has a label. (integer, 1 … 1048576; if absent: length - 1 where all texts have one length, and are several: one row per text)
            context = "context": Count,
            /// Number of different tokens, which are 0, 1, 2, …. (integer, 2 … 16777216; if absent: the largest token + 1)
            vocabulary = "vocabulary": Count,
            /// Fraction of the rows kept for the test split, chosen at random; 0 for no test split. (number, 0 ≤ x < 1; default `0.2`)
            test = "test": Number,
            /// Fraction of the training rows moved to a validation split, chosen at random; 0 for none. (number, 0 ≤ x < 1; default `0`)
            validation = "validation": Number,
            /// Seed of every random choice made in building the data set. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// The outputs of a model with randomly drawn parameters for random inputs, with noise: regression with a known truth.
        ///
        /// `y = f(x) + noise·η` with x and η standard normal, and f the model with the parameters that its `init` draws from the seed (Iwagaki & Watanabe, §3.1: tanh(B tanh(Ax)) of width 10-3-10, noise 0.1, parameters uniform in 0..1). The test split keeps its noise-free targets: `predict: "test"` then gives the generalisation error of the averaged prediction.
        Teacher = "teacher"(model = "model": Handle<dyn crate::model::Model>) of crate::model::teacher::REGISTRY {
            /// Standard deviation of the noise on a target component. (number, ≥ 0; default `0.1`)
            noise = "noise": Number,
            /// Training rows. (integer, ≥ 1; default `1000`)
            train = "train": Count,
            /// Test rows. (integer, ≥ 0; default `10_000`)
            test = "test": Count,
            /// Seed of inputs, noise and teacher. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
    }
}

/// Builders of `model::…`.
pub mod model {
    use super::super::*;
    use std::sync::Arc;

    builders! { "model", Arc<dyn crate::model::Model>;
        /// A fully connected network: `a_l = f(W_l a_{l-1} + b_l)`, any widths.
        ///
        /// Tensors are named `w1` \[out, in], `b1` \[out], `w2`, …, in this order. Zambon (2026) uses ReLU on the output too: `output: "relu"`; Baldock & Marzari (2019) use a logistic output. Gradients are derived by hand.
        Mlp = "mlp"(layers = "layers": Counts) of crate::model::REGISTRY {
            /// Activation of the hidden layers. ("relu" · "tanh" · "logistic" · "gelu" · "identity"; default `relu`)
            activation = "activation": OneOf<choices::Activation>,
            /// Activation of the output layer, before the loss. ("relu" · "tanh" · "logistic" · "gelu" · "identity"; default `identity`)
            output = "output": OneOf<choices::Activation>,
            /// Whether layers have biases. (true or false; default `true`)
            bias = "bias": Flag,
            /// Initial parameters: "pytorch" ±1/√fan_in uniform · "he" N(0, 2/fan_in) · "glorot" N(0, 2/(fan_in+fan_out)) · "lecun" N(0, 1/fan_in), biases 0 · "normal" N(0, init_scale²) · "uniform" 0..init_scale · "zeros" ("pytorch" · "he" · "glorot" · "lecun" · "normal" · "uniform" · "zeros"; default `pytorch`)
            init = "init": OneOf<choices::Init>,
            /// Standard deviation of "normal", upper end of "uniform". (number, > 0; if absent: 1)
            init_scale = "init_scale": Number,
        }
        /// A deep linear network: `y = W_M … W_1 x`, no biases.
        ///
        /// Tensors are named `w1` \[H_1, H_0], `w2`, …. Its local learning coefficient is known exactly (Aoyagi; Hitchcock & Hoogland 2025), which makes it the benchmark of learning-coefficient estimators.
        DeepLinear = "deep_linear"(widths = "widths": Counts) of crate::model::REGISTRY {
            /// Initial parameters: "pytorch" ±1/√fan_in uniform · "he" N(0, 2/fan_in) · "glorot" N(0, 2/(fan_in+fan_out)) · "lecun" N(0, 1/fan_in), biases 0 · "normal" N(0, init_scale²) · "uniform" 0..init_scale · "zeros" ("pytorch" · "he" · "glorot" · "lecun" · "normal" · "uniform" · "zeros"; default `pytorch`)
            init = "init": OneOf<choices::Init>,
            /// Standard deviation of "normal", upper end of "uniform". (number, > 0; if absent: 1)
            init_scale = "init_scale": Number,
        }
        /// An attention-only transformer: a residual stream, causal heads, no MLPs; a logit per token at every position.
        ///
        /// `x ← x + Σ_heads softmax(q kᵀ/√d_head) v W_O` with `q, k` from `LN(x) + position` and `v` from `LN(x)`: learned positions act on keys and queries only (Press et al. 2021, "Shortformer"). Embedding and unembedding are not tied. The defaults are the network of Hitchcock & Hoogland (2025, D.4) without biases; it had vocabulary 5000 and context 1024. Data: dataset::induction, dataset::text, dataset::tokens.
        ///
        /// Tensors, in this order: `embed` \[vocabulary, width], `position` \[context, width]; for each block `block1.norm.weight`, `block1.norm.bias` \[width], `block1.attn.query`, `block1.attn.key`, `block1.attn.value`, `block1.attn.out`, all \[heads, head_width, width]; `final_norm.weight`, `final_norm.bias` \[width], `unembed` \[vocabulary, width]. So a head is one slice along the first axis of each of the four, and that is what `block2.attn.head3` is a name for (the third head of the second block, for the option `restrict` of llc): query, key and value are the weights of a torch.nn.Linear, out is the transpose of one (TransformerLens: W_Q, W_K, W_V with their last axes exchanged, W_O as it is). With biases, a block ends with `.query_bias`, `.key_bias`, `.value_bias` \[heads, head_width] and `.out_bias` \[width], the model with `unembed_bias` \[vocabulary]. Gradients are derived by hand.
        Transformer = "transformer"(vocabulary = "vocabulary": Count, context = "context": Count) of crate::model::REGISTRY {
            /// Number of blocks. (integer, 1 … 1000; default `4`)
            layers = "layers": Count,
            /// Numbers per position in the residual stream, d_model. (integer, 1 … 65536; default `256`)
            width = "width": Count,
            /// Heads per block. (integer, 1 … 65536; default `8`)
            heads = "heads": Count,
            /// Numbers per position in a query, key or value of a head, d_head. (integer, 1 … 65536; if absent: width / heads)
            head_width = "head_width": Count,
            /// Whether blocks and unembedding read the stream through layer norms (ε = 1e-5). (true or false; default `true`)
            layer_norm = "layer_norm": Flag,
            /// Whether queries, keys, values, blocks and logits have biases. (true or false; default `false`)
            bias = "bias": Flag,
            /// Standard deviation of the initial embeddings and matrices, which are normal; layer norms begin with weight 1, biases with 0. (number, > 0; if absent: 0.8/√width, as in TransformerLens)
            init_scale = "init_scale": Number,
        }
        /// A network from an ONNX file, as torch.onnx.export writes it; it begins with the numbers of the file.
        ///
        /// The graph is traced and compiled with its derivatives, as that of model::custom is: no other runtime is involved. The file has one input, whose first axis is that of the examples; export it in evaluation mode with an open length there: `torch.onnx.export(net.eval(), (x,), "net.onnx", dynamic_shapes=({0: torch.export.Dim("rows")},), optimize=False)`. Without `optimize=False` PyTorch transposes some matrices and calls them val_7, and of equal ones keeps one. Operators of versions 7 to 23; one that is not supported is named with its node. Numbers in a file of their own are read from the folder of the model.
        ///
        /// Parameters have the names of the file, in its order: those of the state dict for what PyTorch writes. Which numbers are parameters is what PyTorch remarks; where nobody does, weights and biases of layers are, and other floats with a name of their own that are added or multiplied. Statistics of batch norms, masks, buffers and single numbers are not. `net.weights()` gives their numbers, to begin with or to restrict to. Inputs are the numbers of a row of the data set, in the order of the input's axes.
        Onnx = "onnx"(path = "path": Words) of crate::model::REGISTRY {
            /// Name of the output, or of any value within: \[rows, outputs] or \[rows, positions, outputs]. (string; if absent: the first output)
            output = "output": Words,
            /// Parameters that stay as they are, which are then no parameters: "conv1" stands for all whose names begin with "conv1.". (name, or array of names; if absent: none)
            freeze = "freeze": Anything,
            /// Keep less of a row: what lies between a few layers is computed a second time on the way back. For networks that are deep and rows that are large; an accelerator leaves it out. (true or false; default `false`)
            checkpoint = "checkpoint": Flag,
            /// Tensors that are parameters, too, which nobody says of them; `print(net)` names those that may be. (name, or array of names; if absent: none)
            parameters = "parameters": Anything,
            /// Lengths of the axes of an input without the rows, where the file leaves them open. (array of integers, ≥ 1; if absent: as the file says)
            inputs = "inputs": Counts,
        }
        /// A language model from a folder as `save_pretrained` of the Python package transformers writes it; it begins with the numbers of the folder.
        ///
        /// The folder has config.json and the weights: model.safetensors or pytorch_model.bin, or several files and their index. Families (`model_type`): gpt2, gpt_neox (Pythia), llama, mistral, qwen2. float16 and bfloat16 are read to float32. The network is traced and compiled with its derivatives, as that of model::custom is; dropout is off. What is not supported is refused by name: quantised weights, sliding windows shorter than the context, other scalings of rotary positions than linear and llama3.
        ///
        /// Inputs are tokens \[rows, context], outputs the scores of each next token \[rows, context, vocabulary]: `dataset::tokens` and `dataset::text` give both, with `context: net.inputs` and `vocabulary: net.vocabulary`. Parameters have the names of the checkpoint, in the order in which they are used; `net.weights()` gives their numbers, to begin with or to restrict to, as in `llc(t, s, #{ start: net.weights(), restrict: "transformer.h.0.attn.c_attn.weight\[:, 0..16]" })`. `transformer.h.0.attn.head1`, the name of its attention and the number of a head, from 0, stands for a head's slices of queries, keys, values, their biases, and outputs; where several heads share keys and values, each has them.
        Pretrained = "pretrained"(folder = "folder": Words) of crate::model::REGISTRY {
            /// Positions of a row. (integer, 1 … 1048576; if absent: all positions that config.json says, but at most 1024)
            context = "context": Count,
            /// Parameters that stay as they are, which are then no parameters: "conv1" stands for all whose names begin with "conv1.". (name, or array of names; if absent: none)
            freeze = "freeze": Anything,
            /// Keep less of a row: what lies between a few layers is computed a second time on the way back. For networks that are deep and rows that are large; an accelerator leaves it out. (true or false; default `false`)
            checkpoint = "checkpoint": Flag,
        }
    }
}

/// Builders of `loss::…`.
pub mod loss {
    use super::super::*;
    use std::sync::Arc;

    builders! { "loss", Arc<crate::model::losses::Chosen>;
        /// |target - output|², summed over components, without ½; of classes the target is 1 for the label and 0 elsewhere.
        SquaredError = "squared_error"() of crate::model::losses::REGISTRY {
        }
        /// -ln softmax(output)\[label]. With `smoothing` ε the target is 1 - ε for the label and ε/(K - 1) for each other class; `class_weights` multiply the losses of the rows of each class.
        CrossEntropy = "cross_entropy"() of crate::model::losses::REGISTRY {
            /// ε, what the other classes share. (number, 0 ≤ x < 1; default `0`)
            smoothing = "smoothing": Number,
            /// A weight per class. (array of numbers, ≥ 0; if absent: all 1)
            class_weights = "class_weights": Numbers,
        }
        /// -(1 - p)^γ ln p, where p = softmax(output)\[label] (Lin et al. 2017, eq. 4): examples that are classified well count less.
        Focal = "focal"() of crate::model::losses::REGISTRY {
            /// γ; 0 is the cross-entropy. (number, ≥ 0; default `2`)
            gamma = "gamma": Number,
        }
        /// -ln N(target; output, sd²), summed over components: with `energy: "sum"` and T = 1 the posterior of a network with Gaussian noise.
        ///
        /// The noise is a number, or the name of a parameter that is sampled with the weights and has a prior of its own.
        Gaussian = "gaussian"(sd = "sd": Anything) of crate::model::losses::REGISTRY {
        }
        /// -ln of a Laplace density of the target about the output, summed over components: |y - f|/scale + ln(2 scale).
        Laplace = "laplace"(scale = "scale": Anything) of crate::model::losses::REGISTRY {
        }
        /// -ln of Student's t density of the target about the output, summed over components: noise with outliers.
        StudentT = "student_t"(nu = "nu": Number, scale = "scale": Anything) of crate::model::losses::REGISTRY {
        }
        /// -ln N(target; mean, sd²) where the network says both: of 2k outputs the first k are means, the others ln sd.
        Heteroscedastic = "heteroscedastic"() of crate::model::losses::REGISTRY {
        }
        /// -ln of a Poisson probability of counts, whose logarithm of the rate is the output: exp(f) - y f, summed over components, without ln y!.
        Poisson = "poisson"() of crate::model::losses::REGISTRY {
        }
        /// -ln of independent yes or no: ln(1 + exp(f)) - y f for each component y = 0 or 1, summed.
        MultiLabel = "multi_label"() of crate::model::losses::REGISTRY {
        }
        /// -ln P(label) for classes in an order: P(label ≤ k) = 1/(1 + exp(f - cuts_k)), where f is the only output and the K - 1 increasing `cuts` are sampled with the weights.
        Ordinal = "ordinal"() of crate::model::losses::REGISTRY {
        }
    }
}

/// Builders of `support::…`.
pub mod support {
    use super::super::*;
    use std::sync::Arc;

    builders! { "support", Arc<crate::model::support::Space>;
        /// A parameter of positive values x, for potential::closure and prior::closure. Chains move in u = ln x; densities are those of x, with the term -ln |dx/du| of R.
        Positive = "positive"() of crate::model::support::REGISTRY {
            /// Shape; \[] is a number. (array of integers, ≥ 1; default `\[]`)
            shape = "shape": Counts,
        }
        /// A parameter of values between two numbers, for potential::closure and prior::closure. Chains move in u = ln((x - from)/(to - x)); densities are those of x, with the term -ln |dx/du| of R.
        Interval = "interval"(from = "from": Number, to = "to": Number) of crate::model::support::REGISTRY {
            /// Shape; \[] is a number. (array of integers, ≥ 1; default `\[]`)
            shape = "shape": Counts,
        }
        /// A vector of increasing values x, for potential::closure and prior::closure: each is greater than the one before, as the means of a mixture whose parts must not change places.
        ///
        /// Chains move in x_0 and the logarithms of the steps; densities are those of x.
        Ordered = "ordered"(count = "count": Count) of crate::model::support::REGISTRY {
        }
    }
}

/// Builders of `prior::…`.
pub mod prior {
    use super::super::*;
    use std::sync::Arc;

    builders! { "prior", Arc<crate::target::prior::Prior>;
        /// No prior: R = 0.
        None = "none"() of crate::target::prior::REGISTRY {
        }
        /// A Gaussian prior: R = ½·precision·|w|², so that w ~ N(0, T/precision).
        Gaussian = "gaussian"(precision = "precision": Number) of crate::target::prior::REGISTRY {
        }
        /// An L2 prior scaled with the number of parameters: R = (λ/2N)|w|² (Zambon 2026, eq. 3).
        L2 = "l2"(lambda = "lambda": Number) of crate::target::prior::REGISTRY {
        }
        /// A Gaussian around a point: R = ½γ|w - w0|² (Hitchcock & Hoogland 2025, appendix; their main text omits the ½).
        Localised = "localised"(gamma = "gamma": Number, centre = "centre": Handle<crate::target::prior::Parameters>) of crate::target::prior::REGISTRY {
        }
        /// A uniform box with hard walls: |w_i| < width_i/2 (Baldock & Marzari 2019).
        ///
        /// Trajectories (hmc, nuts, mala) and Langevin-type samplers are reflected at the walls, sampler::metropolis rejects moves out of the box, and sampler::ohzeki_ichiki works within walls only without its flow. The thermometer leaves out what happens at the walls.
        UniformBox = "uniform_box"(width = "width": Anything) of crate::target::prior::REGISTRY {
        }
        /// Normal numbers: p(x) ∝ exp(-½(x - mean)²/sd²), at T = 1.
        ///
        /// In a map of priors, mean and sd may be names of parameters: `#{ w1: prior::normal(0, "tau"), tau: prior::half_cauchy(1) }` samples tau with the weights.
        Normal = "normal"(mean = "mean": Anything, sd = "sd": Anything) of crate::target::prior::REGISTRY {
        }
        /// Laplace numbers: p(x) = exp(-|x - mean|/scale)/(2 scale), at T = 1.
        Laplace = "laplace"(mean = "mean": Anything, scale = "scale": Anything) of crate::target::prior::REGISTRY {
        }
        /// Numbers by Student's t: p(x) ∝ (1 + z²/ν)^(-(ν+1)/2) with z = (x - mean)/scale, at T = 1.
        StudentT = "student_t"(nu = "nu": Number, mean = "mean": Anything, scale = "scale": Anything) of crate::target::prior::REGISTRY {
        }
        /// Cauchy numbers: p(x) ∝ 1/(1 + z²) with z = (x - centre)/scale, at T = 1.
        Cauchy = "cauchy"(centre = "centre": Anything, scale = "scale": Anything) of crate::target::prior::REGISTRY {
        }
        /// Positive numbers, the half of a normal law: p(x) ∝ exp(-½x²/sd²) for x > 0, at T = 1.
        HalfNormal = "half_normal"(sd = "sd": Anything) of crate::target::prior::REGISTRY {
        }
        /// Positive numbers, the half of Student's t: p(x) ∝ (1 + z²/ν)^(-(ν+1)/2) for z = x/scale > 0, at T = 1.
        HalfStudentT = "half_student_t"(nu = "nu": Number, scale = "scale": Anything) of crate::target::prior::REGISTRY {
        }
        /// Positive numbers, the half of a Cauchy law: p(x) ∝ 1/(1 + x²/scale²) for x > 0, at T = 1.
        HalfCauchy = "half_cauchy"(scale = "scale": Anything) of crate::target::prior::REGISTRY {
        }
        /// Positive numbers whose logarithms are normal: ln x ~ N(mean, sd²), at T = 1.
        Lognormal = "lognormal"(mean = "mean": Anything, sd = "sd": Anything) of crate::target::prior::REGISTRY {
        }
        /// Positive numbers: p(x) = rate exp(-rate x), at T = 1.
        Exponential = "exponential"(rate = "rate": Anything) of crate::target::prior::REGISTRY {
        }
        /// Positive numbers: p(x) ∝ x^(shape-1) exp(-rate x), at T = 1.
        Gamma = "gamma"(shape = "shape": Number, rate = "rate": Anything) of crate::target::prior::REGISTRY {
        }
        /// Positive numbers: p(x) ∝ x^(-shape-1) exp(-scale/x), at T = 1.
        InverseGamma = "inverse_gamma"(shape = "shape": Number, scale = "scale": Anything) of crate::target::prior::REGISTRY {
        }
        /// Numbers between 0 and 1: p(x) ∝ x^(a-1) (1 - x)^(b-1), at T = 1.
        Beta = "beta"(a = "a": Number, b = "b": Number) of crate::target::prior::REGISTRY {
        }
        /// The same density everywhere between two numbers, for a parameter of that support; of weights see uniform_box.
        Uniform = "uniform"(from = "from": Number, to = "to": Number) of crate::target::prior::REGISTRY {
        }
        /// The horseshoe: x ~ N(0, scale²λ²) with λ half-Cauchy, λ integrated out (Carvalho, Polson & Scott 2010): most weights near 0, some not.
        ///
        /// The density is infinite at 0, so that gradients are large there: use a sampler that accepts or rejects (hmc, nuts, mala).
        Horseshoe = "horseshoe"(scale = "scale": Anything) of crate::target::prior::REGISTRY {
        }
        /// A mixture of normal laws, such as a spike and a slab: p(x) = Σ_k weight_k N(x; mean_k, sd_k²), at T = 1.
        Mixture = "mixture"(weights = "weights": Numbers, means = "means": Numbers, sds = "sds": Numbers) of crate::target::prior::REGISTRY {
        }
        /// Weights N(0, c/fan) as initialisations scale them, so that widths can be compared: "he" 2/fan_in, "glorot" 2/(fan_in + fan_out), "lecun" 1/fan_in, at T = 1.
        ///
        /// Of a weight that no product shows, fan_in is its last axis.
        Scaled = "scaled"() of crate::target::prior::REGISTRY {
            /// Variance of weights. ("he" · "glorot" · "lecun"; default `lecun`)
            law = "law": OneOf<choices::Law>,
            /// Standard deviation of biases. (number, > 0; default `1`)
            bias = "bias": Number,
        }
    }
}

/// Builders of `potential::…`.
pub mod potential {
    use super::super::*;
    use std::sync::Arc;

    builders! { "potential", Arc<dyn crate::target::Potential>;
        /// An anisotropic Gaussian: U = ½ Σ k_i (w_i - 1)², k spaced geometrically from 1 to `condition`.
        ///
        /// Exact: mean 1, variance T/k_i.
        Gaussian = "gaussian"() of crate::target::analytic::REGISTRY {
            /// Number of parameters. (integer, ≥ 1; default `10`)
            dim = "dim": Count,
            /// Ratio of the largest to the smallest curvature. (number, ≥ 1; default `10`)
            condition = "condition": Number,
            /// n, the number of examples that carry the noise. (integer, ≥ 1; default `1`)
            examples = "examples": Count,
            /// Standard deviation of one example's gradient around the mean, per component. (number, ≥ 0; default `0`)
            noise = "noise": Number,
            /// Seed of the noise. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// Independent double wells: U = Σ barrier·(w_i² - 1)² + tilt·w_i.
        ///
        /// The weight of the left well is known by one-dimensional quadrature.
        DoubleWell = "double_well"() of crate::target::analytic::REGISTRY {
            /// Number of parameters, one well pair each. (integer, ≥ 1; default `1`)
            dim = "dim": Count,
            /// Height of the barrier at w = 0. (number, > 0; default `1`)
            barrier = "barrier": Number,
            /// Energy difference per unit of w. (number, any finite number; default `0.3`)
            tilt = "tilt": Number,
            /// n, the number of examples that carry the noise. (integer, ≥ 1; default `1`)
            examples = "examples": Count,
            /// Standard deviation of one example's gradient around the mean, per component. (number, ≥ 0; default `0`)
            noise = "noise": Number,
            /// Seed of the noise. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// A twisted Gaussian, the banana: U = w_0²/2s² + ½ (w_1 + b (w_0² - s²))² + ½ Σ_{i≥2} w_i², s = `scale`, b = `curvature`.
        ///
        /// Exact: w_0 ~ N(0, s²T) and w_1 + b (w_0² - s²) ~ N(0, T) are independent, and so are the others, w_i ~ N(0, T). Hence w_1 has mean b s² (1 - T), which is 0 at T = 1, and variance T + 2 b² s⁴ T²; w_0 and w_1 are not correlated.
        ///
        /// Source: Haario, Saksman & Tamminen 1999, with s = 10 and b = 0.03 ("moderately twisted") or b = 0.1 ("strongly twisted").
        Banana = "banana"() of crate::target::analytic::REGISTRY {
            /// Number of parameters, even; the first two are twisted. (integer, ≥ 2; default `2`)
            dim = "dim": Count,
            /// b, how far the banana is bent, per unit of w_0². (number, any finite number; default `0.03`)
            curvature = "curvature": Number,
            /// s, the standard deviation of w_0 at T = 1. (number, > 0; default `10`)
            scale = "scale": Number,
            /// n, the number of examples that carry the noise. (integer, ≥ 1; default `1`)
            examples = "examples": Count,
            /// Standard deviation of one example's gradient around the mean, per component. (number, ≥ 0; default `0`)
            noise = "noise": Number,
            /// Seed of the noise. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// Neal's funnel: v ~ N(0, scale²) and x_i ~ N(0, e^v), so U = v²/2s² + Σ_i (½ x_i² e^{-v} + ½ v), s = `scale`.
        ///
        /// w_0 is the tensor `v`, the other N - 1 parameters are the tensor `x`. Exact at T = 1: v has mean 0 and variance s², x_i mean 0 and variance e^{s²/2} (90.02 for s = 3, but heavy-tailed: judge by v). At temperature T: v ~ N(½ (N - 1) s² (T - 1), s²T), and x_i given v ~ N(0, T e^v).
        ///
        /// Source: Neal 2003, Slice sampling, section 8, with N = 10 and s = 3.
        Funnel = "funnel"() of crate::target::analytic::REGISTRY {
            /// Number of parameters, v included. (integer, ≥ 2; default `10`)
            dim = "dim": Count,
            /// s, the standard deviation of v at T = 1. (number, > 0; default `3`)
            scale = "scale": Number,
            /// n, the number of examples that carry the noise. (integer, ≥ 1; default `1`)
            examples = "examples": Count,
            /// Standard deviation of one example's gradient around the mean, per component. (number, ≥ 0; default `0`)
            noise = "noise": Number,
            /// Seed of the noise. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// The posterior of the eight schools, a hierarchical model of N = 10 parameters, at T = 1.
        ///
        /// y_j ~ N(θ_j, σ_j²), θ_j ~ N(μ, τ²), μ ~ N(0, 5²), τ ~ half-Cauchy(0, 5), with y = 28 8 -3 7 -1 1 18 12 and σ = 15 10 16 11 9 11 10 18. The parameters are the tensors `mu`, `log_tau` = ln τ (U has the Jacobian, -ln τ) and `theta`: θ_j itself if `centred`, otherwise the standard normal (θ_j - μ)/τ, `theta_trans` in posteriordb.
        ///
        /// Known, by quadrature: μ has mean 4.397 and standard deviation 3.318, τ has mean 3.598, ln τ has mean 0.802, and θ_1 … θ_8 have means 6.212 4.940 3.927 4.757 3.615 4.043 6.297 4.854.
        ///
        /// Source: Rubin 1981; Gelman et al., Bayesian Data Analysis, section 5.5. Data and priors are those of eight_schools_centered and eight_schools_noncentered in posteriordb (Magnusson et al. 2024), which samples τ through its logarithm too.
        EightSchools = "eight_schools"() of crate::target::analytic::REGISTRY {
            /// Whether `theta` holds the effects θ_j themselves (a funnel, hard to sample), or (θ_j - μ)/τ (easy). (true or false; default `false`)
            centred = "centred": Flag,
            /// n, the number of examples that carry the noise. (integer, ≥ 1; default `1`)
            examples = "examples": Count,
            /// Standard deviation of one example's gradient around the mean, per component. (number, ≥ 0; default `0`)
            noise = "noise": Number,
            /// Seed of the noise. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// A normal crossing, the normal form of a singularity: U = Π_j w_j^{2k_j}, k = `exponents`.
        ///
        /// Exact: the learning coefficient is λ = min_j 1/(2k_j), and its multiplicity m is the number of j that attain it: in a region around 0, ∫ exp(-βU) dw ~ C β^{-λ} (ln β)^{m-1}, so that β⟨U⟩ → λ - (m - 1)/ln β as β → ∞. With a single exponent, ⟨U⟩ = T/2k at any T without any prior.
        ///
        /// U is 0 wherever a w_j is: with several exponents exp(-U/T) cannot be normalised, so add prior::gaussian or prior::uniform_box. For energy: "tempered", ask for n `examples`.
        ///
        /// Source: Watanabe 2009, Algebraic geometry and statistical learning theory (there K(w) is in this form after resolution).
        NormalCrossing = "normal_crossing"() of crate::target::analytic::REGISTRY {
            /// k_j, one for each parameter; U has twice this power of it. (array of integers, 1 … 100; default `\[2, 1]`)
            exponents = "exponents": Counts,
            /// n, the number of examples that carry the noise. (integer, ≥ 1; default `1`)
            examples = "examples": Count,
            /// Standard deviation of one example's gradient around the mean, per component. (number, ≥ 0; default `0`)
            noise = "noise": Number,
            /// Seed of the noise. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// Rosenbrock's curved valley: U = Σ over pairs (x, y) of (a - x)² + b (y - x²)², with x = w_0, w_2, … and y = w_1, w_3, …
        ///
        /// Exact: pairs are independent, x ~ N(a, T/2), and y given x ~ N(x², T/2b). Hence y has mean a² + T/2 and variance T/2b + 2a²T + T²/2, and its covariance with x is aT.
        ///
        /// Source: Rosenbrock 1960, with a = 1 and b = 100, as a function to minimise; as a density Goodman & Weare 2010 (at T = 20).
        Rosenbrock = "rosenbrock"() of crate::target::analytic::REGISTRY {
            /// Number of parameters, even: two per pair. (integer, ≥ 2; default `2`)
            dim = "dim": Count,
            /// a, where the minimum is: x = a, y = a². (number, any finite number; default `1`)
            a = "a": Number,
            /// b, how steep the walls of the valley are. (number, > 0; default `100`)
            b = "b": Number,
            /// n, the number of examples that carry the noise. (integer, ≥ 1; default `1`)
            examples = "examples": Count,
            /// Standard deviation of one example's gradient around the mean, per component. (number, ≥ 0; default `0`)
            noise = "noise": Number,
            /// Seed of the noise. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// A multivariate Student-t distribution, heavy-tailed: U = ½ (ν + N) ln(1 + |w|²/(ν s²)), ν = `nu`, s = `scale`.
        ///
        /// Exact at temperature T: the same with ν' = (ν + N)/T - N degrees of freedom, if that is positive, and no distribution otherwise. Each parameter has mean 0 for ν' > 1 and variance ν s²/(ν' - 2) for ν' > 2. Parameters are uncorrelated but not independent.
        ///
        /// Source: Kotz & Nadarajah 2004, Multivariate t distributions, eq. 1.1.
        StudentT = "student_t"() of crate::target::analytic::REGISTRY {
            /// Number of parameters. (integer, ≥ 1; default `2`)
            dim = "dim": Count,
            /// ν, degrees of freedom at T = 1: the smaller, the heavier the tails. (number, > 0; default `5`)
            nu = "nu": Number,
            /// s, the width of the centre. (number, > 0; default `1`)
            scale = "scale": Number,
            /// n, the number of examples that carry the noise. (integer, ≥ 1; default `1`)
            examples = "examples": Count,
            /// Standard deviation of one example's gradient around the mean, per component. (number, ≥ 0; default `0`)
            noise = "noise": Number,
            /// Seed of the noise. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// A mixture of two Gaussians with tied means: loss_i = -ln\[½ N(x_i; θ_1, 1/b) + ½ N(x_i; θ_1 + θ_2, 1/b)], b = `precision`.
        ///
        /// The parameters are the tensor `theta` = (θ_1, θ_2). The examples x_i are real, and minibatches select them: data drawn from the mixture at θ = `means`, either component with probability ½, or those given as `data`.
        ///
        /// Exact: the likelihood does not change when θ becomes (θ_1 + θ_2, -θ_2), which exchanges the components; so beside the mode near (0, 2) there is one of the same likelihood near (2, -2), and only the prior tells them apart. Moments are known by two-dimensional quadrature.
        ///
        /// Use energy: "sum", so that U = Σ_i loss_i + R is minus the log posterior up to a constant; the prior is not part of it, add prior::gaussian(0.1).
        ///
        /// Source: Ohzeki & Ichiki 2015, eqs. 30-31, with n = 100 and b = 10; tied means as in Welling & Teh 2011, section 5.1. The gradient with respect to θ_2 in eq. 36 of the former is misprinted: that of ln(e_1 + e_2) is b (x - θ_1 - θ_2) e_2/(e_1 + e_2), e_k being the two exponentials.
        Mixture = "mixture"() of crate::target::analytic::REGISTRY {
            /// b, the inverse variance of either component. (number, > 0; default `10`)
            precision = "precision": Number,
            /// n, the number of examples. (integer, 1 … 100000000; if absent: 100, or as many as `data` has)
            examples = "examples": Count,
            /// (θ_1, θ_2) that the data are drawn at: the means are θ_1 and θ_1 + θ_2. Not used with `data`. (array of numbers, any finite number; default `\[0, 2]`)
            means = "means": Numbers,
            /// Seed of the data. Not used with `data`. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
            /// The examples x_i. (array of numbers, any finite number; if absent: drawn from the mixture)
            data = "data": Numbers,
        }
        /// A mixture of isotropic Gaussians whose means lie on the first axis: U = -ln Σ_k a_k N(w; c_k e_1, σ²), a = `weights` (made to sum to 1), c = `centres`, σ = `sigma`.
        ///
        /// Exact: at T = 1 without a prior mode k has the weight a_k, and ∫ e^-U dw = 1. With prior::gaussian(1/τ²) it has a weight ∝ a_k N(c_k; 0, σ² + τ²), and the evidence is ∫ e^-U p(w) dw = (2π(σ² + τ²))^(-N/2) Σ_k a_k exp(-c_k²/2(σ² + τ²)). With prior::uniform_box around all modes the weights are a_k and the evidence is the inverse of its volume.
        GaussianMixture = "gaussian_mixture"() of crate::target::analytic::REGISTRY {
            /// Number of parameters. (integer, ≥ 1; default `2`)
            dim = "dim": Count,
            /// a, the weight of each mode. (array of numbers, > 0; default `\[0.7, 0.3]`)
            weights = "weights": Numbers,
            /// c, the first coordinate of each mean. (array of numbers, any finite number; default `\[-3, 3]`)
            centres = "centres": Numbers,
            /// σ, the standard deviation of every mode in every direction. (number, > 0; default `0.5`)
            sigma = "sigma": Number,
            /// n, the number of examples that carry the noise. (integer, ≥ 1; default `1`)
            examples = "examples": Count,
            /// Standard deviation of one example's gradient around the mean, per component. (number, ≥ 0; default `0`)
            noise = "noise": Number,
            /// Seed of the noise. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
    }
}

/// Builders of `optimizer::…`.
pub mod optimizer {
    use super::super::*;
    use std::sync::Arc;

    builders! { "optimizer", Arc<crate::simulation::optimizer::Optimizer>;
        /// Adam (Kingma & Ba 2015), on the gradient of L + R/s.
        Adam = "adam"() of crate::simulation::optimizer::REGISTRY {
            /// Learning rate, or a schedule over epochs, e.g. schedule::decay(1e-4, 0.8, 1000). (number or schedule, > 0; default `1e-3`)
            lr = "lr": Rate,
            /// Decay of the mean gradient. (number, 0 ≤ x < 1; default `0.9`)
            beta1 = "beta1": Number,
            /// Decay of the mean squared gradient. (number, 0 ≤ x < 1; default `0.999`)
            beta2 = "beta2": Number,
            /// Added to the root of the mean square. (number, > 0; default `1e-8`)
            epsilon = "epsilon": Number,
            /// Passes over the training examples, at most. (integer, ≥ 1; default `50`)
            epochs = "epochs": Count,
            /// Examples per minibatch, shuffled anew every epoch. (integer, ≥ 1; default `128`)
            batch = "batch": Count,
            /// Stop when this has not improved on the validation split, and keep the best parameters. Needs `validation` in the data set. ("none" · "loss" · "error"; default `none`)
            early_stopping = "early_stopping": OneOf<choices::EarlyStopping>,
            /// Epochs without improvement before stopping early. (integer, ≥ 1; default `20`)
            patience = "patience": Count,
        }
        /// Adam with decoupled weight decay (Loshchilov & Hutter 2019): `w ← (1 - lr·weight_decay) w` before each step of Adam.
        ///
        /// Decays all parameters, as `torch.optim.AdamW` given all of them does.
        Adamw = "adamw"() of crate::simulation::optimizer::REGISTRY {
            /// Learning rate, or a schedule over epochs, e.g. schedule::decay(1e-4, 0.8, 1000). (number or schedule, > 0; default `1e-3`)
            lr = "lr": Rate,
            /// Decay of the mean gradient. (number, 0 ≤ x < 1; default `0.9`)
            beta1 = "beta1": Number,
            /// Decay of the mean squared gradient. (number, 0 ≤ x < 1; default `0.999`)
            beta2 = "beta2": Number,
            /// Added to the root of the mean square. (number, > 0; default `1e-8`)
            epsilon = "epsilon": Number,
            /// Fraction of the parameters that is subtracted per unit of learning rate. (number, ≥ 0; default `0.01`)
            weight_decay = "weight_decay": Number,
            /// Passes over the training examples, at most. (integer, ≥ 1; default `50`)
            epochs = "epochs": Count,
            /// Examples per minibatch, shuffled anew every epoch. (integer, ≥ 1; default `128`)
            batch = "batch": Count,
            /// Stop when this has not improved on the validation split, and keep the best parameters. Needs `validation` in the data set. ("none" · "loss" · "error"; default `none`)
            early_stopping = "early_stopping": OneOf<choices::EarlyStopping>,
            /// Epochs without improvement before stopping early. (integer, ≥ 1; default `20`)
            patience = "patience": Count,
        }
        /// Stochastic gradient descent with momentum, on the gradient of L + R/s: `v ← μv + g`, `w ← w - lr·v`.
        Sgd = "sgd"() of crate::simulation::optimizer::REGISTRY {
            /// Learning rate, or a schedule over epochs. (number or schedule, > 0; default `1e-2`)
            lr = "lr": Rate,
            /// μ, the share of the velocity that is kept. (number, 0 ≤ x < 1; default `0.9`)
            momentum = "momentum": Number,
            /// Passes over the training examples, at most. (integer, ≥ 1; default `50`)
            epochs = "epochs": Count,
            /// Examples per minibatch, shuffled anew every epoch. (integer, ≥ 1; default `128`)
            batch = "batch": Count,
            /// Stop when this has not improved on the validation split, and keep the best parameters. Needs `validation` in the data set. ("none" · "loss" · "error"; default `none`)
            early_stopping = "early_stopping": OneOf<choices::EarlyStopping>,
            /// Epochs without improvement before stopping early. (integer, ≥ 1; default `20`)
            patience = "patience": Count,
        }
    }
}

/// Builders of `gradient::…`.
pub mod gradient {
    use super::super::*;
    use std::sync::Arc;

    builders! { "gradient", Arc<crate::sampler::gradient::Estimator>;
        /// ∇U over all examples: no noise.
        Full = "full"() of crate::sampler::gradient::REGISTRY {
        }
        /// `s·∇L_B(w) + ∇R(w)`: the gradient over a fresh random minibatch, which is unbiased.
        Minibatch = "minibatch"() of crate::sampler::gradient::REGISTRY {
            /// m, examples per minibatch. (integer, ≥ 1; default `100`)
            batch = "batch": Count,
            /// Whether examples are drawn independently, so that one can be drawn twice. Otherwise the noise is smaller by the factor (n-m)/(n-1). (true or false; default `true`)
            replacement = "replacement": Flag,
        }
        /// `∇L_B(w) - ∇L_B(w0) + ∇L(w0)` in place of ∇L_B(w): a minibatch gradient whose noise shrinks with |w - w0|².
        ///
        /// The gradient at the anchor w0 is taken over the same minibatch, and over all examples once at the start of the run, so a step costs two minibatch gradients. Worth it near w0 (Baker, Fearnhead, Fox & Nemeth 2019; Nagapetyan et al. 2017): the summary's measured noise says whether it is.
        ControlVariates = "control_variates"() of crate::sampler::gradient::REGISTRY {
            /// m, examples per minibatch. (integer, ≥ 1; default `100`)
            batch = "batch": Count,
            /// Whether examples are drawn independently, so that one can be drawn twice. Otherwise the noise is smaller by the factor (n-m)/(n-1). (true or false; default `true`)
            replacement = "replacement": Flag,
            /// w0: a result of `train`, `run.params()` or `parameters(\[…])`, of which the first vector is taken. (Parameters; if absent: where each chain starts)
            anchor = "anchor": Handle<crate::target::prior::Parameters>,
        }
    }
}

/// Builders of `sampler::…`.
pub mod sampler {
    use super::super::*;
    pub use crate::sampler::{named, own, register};
    use std::sync::Arc;

    builders! { "sampler", Arc<crate::sampler::ConfiguredSampler>;
        /// Samples exp(-U/T) as ε → 0, by stochastic-gradient Langevin dynamics: `w ← w - (ε/2) g + sqrt(εT) η`.
        ///
        /// g is the minibatch gradient of U, η standard normal. Welling & Teh (2011); Iwagaki & Watanabe with ε = 2α; Hitchcock & Hoogland (2025), algorithm 1. The minibatch noise heats the chain by (ε/4)·V per component, V the variance of g, and the finite step adds an error of order ε·curvature: watch the virial temperature.
        Sgld = "sgld"() of crate::sampler::REGISTRY {
            /// Step size ε, in parameter² per energy. (number or schedule, > 0; default `1e-4`)
            step = "step": Rate,
            /// m, examples per minibatch, drawn independently at every step; short for gradient::minibatch(#{ batch: m }). (integer, ≥ 1; if absent: 100)
            batch = "batch": Count,
            /// How ∇U is estimated; see the namespace `gradient`. (Gradient; if absent: gradient::minibatch(#{ batch }))
            gradient = "gradient": Handle<crate::sampler::gradient::Estimator>,
        }
        /// Samples exp(-U/T) as ε → 0, by SGLD with a step size per parameter, which burn-in finds and sampling keeps.
        ///
        /// `ε_i = ε/(sqrt(v_i) + a)`, `w_i ← w_i - (ε_i/2) g_i + sqrt(ε_i T) η_i`, v the mean of g_L², g_L the minibatch gradient of the mean loss without s and prior. In the first half of burn-in the mean forgets by `decay`, in the second half it forgets nothing, and then it is frozen: step sizes that do not depend on w need no Γ, and minibatches heat the chain as they do in sampler::sgld, by (ε_i/4)·V. Without burn-in v is that of the first minibatch.
        ///
        /// `preconditioner: "running"` is algorithm 3 of Hitchcock & Hoogland (2025; Li et al. 2016): `v ← bv + (1-b)g_L²` all the time, v = 1 at the start, v̂ = v/(1-b^(t+1)) (they print the exponent t, which divides by zero at t = 0). As there, the term Γ that makes up for steps that depend on w is left out: the law is not exp(-U/T), however small ε is. At b = 0.99 the cost of a small network comes out 1.7 % too high, which the virial temperature does not show, and U of a Gaussian of condition 4 at T = 0.5 by 30 %.
        RmspropSgld = "rmsprop_sgld"() of crate::sampler::REGISTRY {
            /// Base step size ε; that of parameter i is ε/(sqrt(v_i) + stability). (number or schedule, > 0; default `1e-4`)
            step = "step": Rate,
            /// "frozen": v stays what it is at the end of burn-in, so that the law is right as ε → 0 · "running": as in the papers, which samples another law. ("frozen" · "running"; default `frozen`)
            preconditioner = "preconditioner": OneOf<choices::Preconditioner>,
            /// b, decay per step of the running mean square v. (number, 0 < x < 1; default `0.99`)
            decay = "decay": Number,
            /// a, which bounds the step size of parameters that see no gradient. (number, > 0; default `0.1`)
            stability = "stability": Number,
            /// m, examples per minibatch, drawn independently at every step; short for gradient::minibatch(#{ batch: m }). (integer, ≥ 1; if absent: 100)
            batch = "batch": Count,
            /// How ∇U is estimated; see the namespace `gradient`. (Gradient; if absent: gradient::minibatch(#{ batch }))
            gradient = "gradient": Handle<crate::sampler::gradient::Estimator>,
        }
        /// Samples exp(-U/T) as ε → 0, by SGLD with a step size per parameter and steps that are running means, of gradient and noise.
        ///
        /// Step sizes as in sampler::rmsprop_sgld; `u ← b1 u + (1-b1)\[sqrt(ε_i T) η - (ε_i/2) g]`, `w ← w + u`: Langevin dynamics with the momentum u, and the friction 1-b1 per step.
        ///
        /// `preconditioner: "running"` is algorithm 2 of Hitchcock & Hoogland (2025): v keeps being updated, and the mean is that of the loss gradient only, `m ← b1 m + (1-b1)g_L`, m̂ = m/(1-b1^(t+1)), with s·m̂ in the place of the loss part of g and fresh noise at every step. A force that lags behind by b1/(1-b1) steps heats the chain, by (b1/(1-b1))·ε_i·curvature/2 of T: at b = 0.99 and b1 = 0.9 the cost of a small network comes out 3.3 % too high, about half of it from the lag and half from v.
        AdamSgld = "adam_sgld"() of crate::sampler::REGISTRY {
            /// Base step size ε; that of parameter i is ε/(sqrt(v_i) + stability). (number or schedule, > 0; default `1e-4`)
            step = "step": Rate,
            /// "frozen": v stays what it is at the end of burn-in, so that the law is right as ε → 0 · "running": as in the papers, which samples another law. ("frozen" · "running"; default `frozen`)
            preconditioner = "preconditioner": OneOf<choices::Preconditioner>,
            /// b, decay per step of the running mean square v. (number, 0 < x < 1; default `0.99`)
            decay = "decay": Number,
            /// b1, decay per step of the running mean, of the steps or, with a running preconditioner, of the gradient. (number, 0 < x < 1; default `0.9`)
            moment_decay = "moment_decay": Number,
            /// a, which bounds the step size of parameters that see no gradient. (number, > 0; default `0.1`)
            stability = "stability": Number,
            /// m, examples per minibatch, drawn independently at every step; short for gradient::minibatch(#{ batch: m }). (integer, ≥ 1; if absent: 100)
            batch = "batch": Count,
            /// How ∇U is estimated; see the namespace `gradient`. (Gradient; if absent: gradient::minibatch(#{ batch }))
            gradient = "gradient": Handle<crate::sampler::gradient::Estimator>,
        }
        /// Samples exp(-U/T) at the end of each cycle, as ε → 0 and for long cycles, by SGLD whose step falls from `step` to 0 along a cosine, again and again.
        ///
        /// `ε_t = ½ε0(cos(πφ) + 1)`, φ the elapsed fraction of the cycle (Zhang, Li, Zhang, Chen & Wilson 2020, eq. 1). In the first part of a cycle, `exploration`, no noise is injected: gradient descent with large steps, to find another mode. It ends in a minimum, from where noise must bring the chain back to its temperature before there is anything to sample: that is the next part, `settling`. It does so if Σε over that part is several times 1/k for the smallest curvature k that counts; at the defaults Σε is 0.17·ε0·cycle, with exploration 0.8 and settling 0.1 only 0.006·ε0·cycle. A cycle that is too short samples a law that is too cold, and the virial thermometer, which uses the samples alone, shows it.
        ///
        /// Only what is recorded in the rest of a cycle is a sample, and records elsewhere are refused: `every: trigger::cyclical(cycle, exploration + settling, steps)` records there.
        CyclicalSgld = "cyclical_sgld"(step = "step": Number, cycle = "cycle": Count) of crate::sampler::REGISTRY {
            /// Part of a cycle without noise. (number, 0 ≤ x < 1; default `0.25`)
            exploration = "exploration": Number,
            /// Part of a cycle after exploration, with noise but without samples. (number, 0 ≤ x < 1; default `0.25`)
            settling = "settling": Number,
            /// m, examples per minibatch, drawn independently at every step; short for gradient::minibatch(#{ batch: m }). (integer, ≥ 1; if absent: 100)
            batch = "batch": Count,
            /// How ∇U is estimated; see the namespace `gradient`. (Gradient; if absent: gradient::minibatch(#{ batch }))
            gradient = "gradient": Handle<crate::sampler::gradient::Estimator>,
        }
        /// Samples exp(-U/T) as ε → 0, by SGLD with a divergence-free flow: `w ← w - (ε/2)(I + γJ)g + sqrt(εT) η`, J antisymmetric.
        ///
        /// Ohzeki (2015); Ohzeki & Ichiki (2015). The flow breaks detailed balance but not the law, and mixes faster where it lets the chain circulate. `between: "parameters"`: (Jg)_k = g_{k+1} - g_{k-1}, cyclic over the parameters (eq. 19). `between: "replicas"`: the same between the chains of a temperature, each with a minibatch of its own ("data flow", eq. 26). For two parameters, or two replicas, the cyclic form vanishes; J = \[\[0, 1], \[-1, 0]] replaces it (eqs. 20, 21). The sign of γ is that of eq. 19; eq. 26 has the opposite one, which reverses the ring. A single replica is SGLD. The larger γ, the smaller the step must be. In a box with hard walls the flow would cross them: there γ must be 0.
        ///
        /// With `form` "rmsprop" or "adam" the step sizes D of sampler::rmsprop_sgld or sampler::adam_sgld enter as D^½(I + γJ)D^½, frozen at the end of burn-in unless the `preconditioner` is "running"; with "adam" the step without the flow is a running mean, of gradient and noise.
        OhzekiIchiki = "ohzeki_ichiki"() of crate::sampler::REGISTRY {
            /// Step size ε, in parameter² per energy; Ohzeki's dt is ε/2. (number or schedule, > 0; default `1e-4`)
            step = "step": Rate,
            /// γ, strength of the flow; 0 is SGLD. (number, any finite number; default `1.0`)
            gamma = "gamma": Number,
            /// What flows: gradient components between parameters, or gradients between chains of a temperature. ("parameters" · "replicas"; default `parameters`)
            between = "between": OneOf<choices::Between>,
            /// The form of SGLD to which the flow is added. ("sgld" · "rmsprop" · "adam"; default `sgld`)
            form = "form": OneOf<choices::OhzekiIchikiForm>,
            /// "frozen": v stays what it is at the end of burn-in, so that the law is right as ε → 0 · "running": as in the papers, which samples another law. ("frozen" · "running"; default `frozen`)
            preconditioner = "preconditioner": OneOf<choices::Preconditioner>,
            /// b of the forms "rmsprop" and "adam". (number, 0 < x < 1; default `0.99`)
            decay = "decay": Number,
            /// b1 of the form "adam". (number, 0 < x < 1; default `0.9`)
            moment_decay = "moment_decay": Number,
            /// a of the forms "rmsprop" and "adam". (number, > 0; default `0.1`)
            stability = "stability": Number,
            /// m, examples per minibatch, drawn independently at every step; short for gradient::minibatch(#{ batch: m }). (integer, ≥ 1; if absent: 100)
            batch = "batch": Count,
            /// How ∇U is estimated; see the namespace `gradient`. (Gradient; if absent: gradient::minibatch(#{ batch }))
            gradient = "gradient": Handle<crate::sampler::gradient::Estimator>,
        }
        /// Samples exp(-U/T) as ε → 0, by stochastic-gradient Hamiltonian Monte Carlo.
        ///
        /// `p ← (1-α)p - εg + sqrt(2αεT) η`, `w ← w + p`, with p ~ N(0, εT) (Chen, Fox & Guestrin 2014, eq. 15). The minibatch noise heats the chain by (ε/2α)·V per component. `kinetic` is that of the mean momentum of two steps, which is T where that of p is T/(1-α/2). Algorithm 4 of Hitchcock & Hoogland (2025) has half the force, -(ε/2)g, and so samples exp(-U/2T): `form: "hitchcock2025"` reproduces that, with its virial temperature of 2T.
        Sghmc = "sghmc"() of crate::sampler::REGISTRY {
            /// Step size ε, in parameter² per energy: the square of the time step. (number or schedule, > 0; default `1e-4`)
            step = "step": Rate,
            /// α, fraction of the momentum lost per step. (number, 0.000001 … 1; default `0.1`)
            friction = "friction": Number,
            /// "hitchcock2025": as printed there, to reproduce the paper; it samples another temperature. ("correct" · "hitchcock2025"; default `correct`)
            form = "form": OneOf<choices::SghmcForm>,
            /// m, examples per minibatch, drawn independently at every step; short for gradient::minibatch(#{ batch: m }). (integer, ≥ 1; if absent: 100)
            batch = "batch": Count,
            /// How ∇U is estimated; see the namespace `gradient`. (Gradient; if absent: gradient::minibatch(#{ batch }))
            gradient = "gradient": Handle<crate::sampler::gradient::Estimator>,
        }
        /// Samples exp(-U/T) as ε → 0, by a stochastic-gradient Nosé–Hoover thermostat: the friction adapts to the gradient's noise.
        ///
        /// `p ← (1-α)p - εg + sqrt(2α0εT) η`, `w ← w + p`, `α ← α + |p̄|²/N - εT`, with one friction α per chain that begins at α0, the friction that the injected noise belongs to (Ding et al. 2014). p̄ is the mean momentum of two steps: with |p|² in its place, as in Ding et al., T is reached by a momentum that is 1/(1-α/2) too hot for its noise, and the parameters are colder than T by the factor 1-α0/2: `form: "ding2014"`. Noise that differs between components is balanced on average only. Algorithm 5 of Hitchcock & Hoogland (2025) has half the force, |p| in place of |p|², and α in place of α0 in the noise: `form: "hitchcock2025"`, whose friction grows without bound.
        Sgnht = "sgnht"() of crate::sampler::REGISTRY {
            /// Step size ε, in parameter² per energy: the square of the time step. (number or schedule, > 0; default `1e-4`)
            step = "step": Rate,
            /// α0, the initial friction, which also sets the injected noise. (number, 0.000001 … 1; default `0.1`)
            friction = "friction": Number,
            /// "ding2014": with |p|², colder by α0/2 · "hitchcock2025": as printed there, to reproduce the paper. ("correct" · "ding2014" · "hitchcock2025"; default `correct`)
            form = "form": OneOf<choices::SgnhtForm>,
            /// m, examples per minibatch, drawn independently at every step; short for gradient::minibatch(#{ batch: m }). (integer, ≥ 1; if absent: 100)
            batch = "batch": Count,
            /// How ∇U is estimated; see the namespace `gradient`. (Gradient; if absent: gradient::minibatch(#{ batch }))
            gradient = "gradient": Handle<crate::sampler::gradient::Estimator>,
        }
        /// Samples exp(-U/T) as δt → 0, by underdamped Langevin dynamics with the gradient over all examples.
        ///
        /// The integrator of Bussi & Parrinello (2007), as in Zambon et al. (2026), eqs. 7 and 8: with c1 = exp(-γδt/2) and C2² = (1-c1²)MT, `Π ← c1²Π - ½(1+c1²)δt ∇U + sqrt(1+c1²)·C2·R`, `w ← w + δt Π/M`. The finite step adds an error of order δt²·curvature/M: watch the virial temperature. With a noisy gradient the chain is heated by about δt(1+c1²)V/(4γM); sampler::pseudo_langevin corrects for that.
        Langevin = "langevin"(dt = "dt": Number) of crate::sampler::REGISTRY {
            /// γ, friction per time: momenta are forgotten in about 1/γ. (number, > 0; default `1.0`)
            friction = "friction": Number,
            /// M, the mass of every parameter; of those that have masses of their own, a factor. (number, > 0; default `1.0`)
            mass = "mass": Number,
            /// Learn masses T/Var(w_i) in burn-in, at 45, 65 and 90 % of it, if it has at least 50 steps. dt is then in units where standard deviations are 1, below 2; it must be stable with the masses of the beginning too. (true or false; default `false`)
            adapt_mass = "adapt_mass": Flag,
            /// Directions along which masses differ from a diagonal, at most, learnt in burn-in: for parameters that depend on each other, as those of regressions, and networks with a few stiff directions. Each costs two passes over the parameters per gradient, and four draws of memory with as many gradients. Not within walls, nor with minibatches. (integer, 0 … 64; if absent: 8 in `sample` and `sweep` of at most 100 parameters (not of hmc), else 0)
            rank = "rank": Count,
            /// M_i to begin with: `parameters(\[\[…]])`, a number for each parameter. (Parameters; if absent: 1 for each)
            masses = "masses": Handle<crate::target::prior::Parameters>,
            /// m, examples per minibatch; short for gradient::minibatch(#{ batch: m }). (integer, ≥ 1; if absent: all examples)
            batch = "batch": Count,
            /// How ∇U is estimated; see the namespace `gradient`. (Gradient; if absent: gradient::full())
            gradient = "gradient": Handle<crate::sampler::gradient::Estimator>,
        }
        /// Samples exp(-U/T) for a small temperature ratio, with minibatch gradients whose noise is part of the heat bath.
        ///
        /// Zambon, Caruso, Zecchina & Tiana (2026), eq. 23: `Π ← c1²Π - ½(1+c1²)δt g + σR`, `w ← w + M⁻¹Π δt`, with `σ² = (1+c1²)\[(1-c1²)MT - (1+c1²)(δt/2)²V]`. V, the variance of the minibatch gradient, is measured at the start and at every refresh; the masses `M_i = δt² V_i / (4(1-c1²)T·ratio)` make the temperature ratio 𝒯_i = `ratio` for every parameter. At a refresh, masses whose 𝒯_i grew past `ratio_max` are raised and their momenta redrawn, and with probability `reset` all are set anew. While V stays within 10 %, the interval is multiplied by the length of that streak. A chain whose kinetic temperature exceeds T by half (or five standard deviations), looked at every ten steps, is hotter than V explains: it is refreshed.
        ///
        /// V enters masses clamped from below, so that weights that see no gradient keep a finite mass, and a mass is never so small that the prior's oscillation is badly resolved (M ≥ 25 δt²·precision) or that thermal motion moves a weight by more than 5 % of the weights' root mean square per step (M ≥ 400 δt²·T/⟨w²⟩).
        ///
        /// V counts the noise of each parameter alone. The noise of a network is correlated between parameters: it heats a few stiff directions far more than 𝒯 says, to T·(1+(1+c1²)𝒯) in a direction where its ratio is 𝒯. The collective ratio tr Q²/tr Q, where Q is the matrix that has the 𝒯_i on its diagonal, is the mean of the ratios of all directions, each weighted by the noise in it; it is measured with V and reported as `ratio_collective`. By default the masses are multiplied, in burn-in, until it is `ratio`. With masses: "noise" they follow V alone, as published: chains move up to a hundred times faster, and the law is off (on digits, 64-16-10, m = 30 of 300, the collective ratio is about 1 and the cost 4 to 11 % too large). The collective ratio falls with m.
        PseudoLangevin = "pseudo_langevin"() of crate::sampler::REGISTRY {
            /// m, examples per minibatch, drawn independently at every step; short for gradient::minibatch(#{ batch: m }). (integer, ≥ 1; if absent: 100)
            batch = "batch": Count,
            /// How ∇U is estimated; see the namespace `gradient`. (Gradient; if absent: gradient::minibatch(#{ batch }))
            gradient = "gradient": Handle<crate::sampler::gradient::Estimator>,
            /// 𝒯, the variance of the minibatch noise over that of the heat bath: of all directions together, or of each parameter with masses: "noise". (number, 0.000001 … 0.5; default `0.03`)
            ratio = "ratio": Number,
            /// 𝒯_max, above which a mass is raised at a refresh, or in burn-in all are; at most 1/(1+c1²). (number, 0.000001 … 0.5; if absent: 2 × ratio)
            ratio_max = "ratio_max": Number,
            /// m1 = sqrt(1-c1²), friction per step; c1 = exp(-γδt/2). (number, 0.01 … 0.99; default `0.1`)
            friction = "friction": Number,
            /// δt. Masses scale with its square, so it changes nothing unless masses are "uniform". (number, > 0; default `1`)
            dt = "dt": Number,
            /// Usual number of steps between two measurements of V; fewer (at least 10) while V changes fast, more while it is steady. (integer, ≥ 1; default `200`)
            refresh = "refresh": Count,
            /// Longest interval between two measurements of V, in steps. (integer, ≥ 1; default `16_000`)
            refresh_max = "refresh_max": Count,
            /// ρ_reset, probability that a refresh sets all masses and momenta anew. (number, 0 ≤ x ≤ 1; default `0.0`)
            reset = "reset": Number,
            /// Lower clamp of V_i in the masses (Zambon et al. use 1e-8). (number, ≥ 0; if absent: 10 % of the tensor's mean)
            variance_floor = "variance_floor": Number,
            /// V has converged when sqrt(V_i) of 99 % of the parameters changes by less than this over 100 minibatches. (number, > 0; default `0.1`)
            variance_tolerance = "variance_tolerance": Number,
            /// Largest number of minibatches for one measurement of V. (integer, 2 … 10000; default `1000`)
            variance_batches = "variance_batches": Count,
            /// "collective": from V and its correlations · "noise": from V alone (pL as published) · "uniform": all 1 with a small dt (naive-pL). ("collective" · "noise" · "uniform"; default `collective`)
            masses = "masses": OneOf<choices::Masses>,
        }
        /// Samples exp(-U/T) exactly, by hybrid Monte Carlo.
        ///
        /// Momenta p ~ N(0, MT), `leapfrog` velocity-Verlet steps of `dt`, accepted with probability min(1, exp(-ΔH/T)); H = ½pᵀM⁻¹p + U, ΔH in double precision. Duane et al. (1987); Zambon et al. (2026), §II.2. One step is one trajectory.
        ///
        /// With `batch` or `gradient`, trajectories follow the gradient of a minibatch that is drawn once per trajectory, and are accepted by U over all examples: still exact, but a trajectory that follows another energy is soon rejected (mb-hMC of Zambon et al.).
        ///
        /// During burn-in the step size is adapted to `acceptance` by dual averaging (Hoffman & Gelman 2014), and the variances of the parameters are collected in windows of growing length for diagonal masses M_i = T/Var(w_i). Both are frozen afterwards. For an exact sampler ⟨exp(-ΔH/T)⟩ = 1: see `exp_energy_error` in the sample statistics. At the walls of prior::uniform_box a coordinate is reflected and its momentum reversed, which keeps the law. `energy_error` is ΔH/T, cut at ±1000, and `diverging` the share of trajectories that reached the cut: the step is too large where they went. `hamiltonian` is H at the start of a trajectory (`energy` in the files for ArviZ), `bfmi` the Bayesian fraction of missing information of all trajectories of the chain after burn-in (Betancourt 2016): below 0.3 fresh momenta do not carry the chain between levels of the energy, as in funnels.
        Hmc = "hmc"() of crate::sampler::REGISTRY {
            /// Velocity-Verlet steps per trajectory. (integer, 1 … 60000; default `10`)
            leapfrog = "leapfrog": Count,
            /// Step size (the first one, if adapted). (number, > 0; if absent: found at the start)
            dt = "dt": Number,
            /// Acceptance that the step size is adapted to. (number, 0 < x < 1; default `0.8`)
            acceptance = "acceptance": Number,
            /// Adapt the step size during burn-in. (true or false; default `true`)
            adapt = "adapt": Flag,
            /// Adapt the masses during burn-in, if it has at least 50 steps and the step size is adapted. (true or false; default `true`)
            adapt_mass = "adapt_mass": Flag,
            /// Directions along which masses differ from a diagonal, at most, learnt in burn-in: for parameters that depend on each other, as those of regressions, and networks with a few stiff directions. Each costs two passes over the parameters per gradient, and four draws of memory with as many gradients. Not within walls, nor with minibatches. (integer, 0 … 64; if absent: 8 in `sample` and `sweep` of at most 100 parameters (not of hmc), else 0)
            rank = "rank": Count,
            /// M_i to begin with: `parameters(\[\[…]])`, a number for each parameter. (Parameters; if absent: 1 for each)
            masses = "masses": Handle<crate::target::prior::Parameters>,
            /// Relative half width of a uniform factor on dt, drawn per trajectory, against resonances. (number, 0 ≤ x < 1; default `0.1`)
            jitter = "jitter": Number,
            /// m, examples per minibatch; short for gradient::minibatch(#{ batch: m }). (integer, ≥ 1; if absent: all examples)
            batch = "batch": Count,
            /// How ∇U is estimated; see the namespace `gradient`. (Gradient; if absent: gradient::full())
            gradient = "gradient": Handle<crate::sampler::gradient::Estimator>,
        }
        /// Samples exp(-U/T) exactly, by hybrid Monte Carlo whose trajectories are as long as pays (SNAPER).
        ///
        /// As sampler::hmc; a trajectory has a random number of steps, from a half of the greatest one to that, by a Halton sequence. In burn-in trajectories go twice as far, and the length is chosen for which a gradient brings most, along the direction in which the draws vary most, in units of the masses: the squared jump of a coordinate's square (the criterion of ChEES, Hoffman, Radul & Sountsov 2021, along the first principal component as Sountsov & Hoffman 2022) or of the coordinate, whichever relaxes more slowly. They climb its gradient, averaged over many chains; with a few chains that gradient is mostly noise.
        ///
        /// Each chain learns from its own trajectories: on a ladder the length belongs to the rung. Nothing is learnt without burn-in or with `adapt: false`: trajectories then have 8 to 16 steps. Step size and masses adapt as those of sampler::hmc. `leapfrog` in the sample statistics is the number of gradients of a trajectory.
        Snaper = "snaper"() of crate::sampler::REGISTRY {
            /// Step size (the first one, if adapted). (number, > 0; if absent: found at the start)
            dt = "dt": Number,
            /// Acceptance that the step size is adapted to. (number, 0 < x < 1; default `0.8`)
            acceptance = "acceptance": Number,
            /// Adapt the step size during burn-in. (true or false; default `true`)
            adapt = "adapt": Flag,
            /// Adapt the masses during burn-in, if it has at least 50 steps and the step size is adapted. (true or false; default `true`)
            adapt_mass = "adapt_mass": Flag,
            /// Directions along which masses differ from a diagonal, at most, learnt in burn-in: for parameters that depend on each other, as those of regressions, and networks with a few stiff directions. Each costs two passes over the parameters per gradient, and four draws of memory with as many gradients. Not within walls, nor with minibatches. (integer, 0 … 64; if absent: 8 in `sample` and `sweep` of at most 100 parameters (not of hmc), else 0)
            rank = "rank": Count,
            /// M_i to begin with: `parameters(\[\[…]])`, a number for each parameter. (Parameters; if absent: 1 for each)
            masses = "masses": Handle<crate::target::prior::Parameters>,
        }
        /// Samples exp(-U/T) exactly, by the No-U-Turn sampler.
        ///
        /// Hoffman & Gelman (2014), with multinomial choice of the next state along the trajectory and the generalised U-turn criterion (Betancourt 2017): a velocity-Verlet trajectory is doubled, forwards or backwards in time, until its ends come closer to each other. Step size and masses adapt in burn-in as those of sampler::hmc do. One step is one trajectory; `leapfrog` in the sample statistics is the number of its gradients, each over all examples. `reached_max_treedepth` is the share of trajectories that `max_depth` ended before they turned: raise it where that is not rare. `diverging`, `hamiltonian` and `bfmi` are as in sampler::hmc.
        Nuts = "nuts"() of crate::sampler::REGISTRY {
            /// Doublings at most: trajectories have up to 2^max_depth steps. (integer, 1 … 14; default `10`)
            max_depth = "max_depth": Count,
            /// Step size (the first one, if adapted). (number, > 0; if absent: found at the start)
            dt = "dt": Number,
            /// Mean acceptance along a trajectory that the step size is adapted to. (number, 0 < x < 1; default `0.8`)
            acceptance = "acceptance": Number,
            /// Adapt the step size during burn-in. (true or false; default `true`)
            adapt = "adapt": Flag,
            /// Adapt the masses during burn-in, if it has at least 50 steps and the step size is adapted. (true or false; default `true`)
            adapt_mass = "adapt_mass": Flag,
            /// Directions along which masses differ from a diagonal, at most, learnt in burn-in: for parameters that depend on each other, as those of regressions, and networks with a few stiff directions. Each costs two passes over the parameters per gradient, and four draws of memory with as many gradients. Not within walls, nor with minibatches. (integer, 0 … 64; if absent: 8 in `sample` and `sweep` of at most 100 parameters (not of hmc), else 0)
            rank = "rank": Count,
            /// M_i to begin with: `parameters(\[\[…]])`, a number for each parameter. (Parameters; if absent: 1 for each)
            masses = "masses": Handle<crate::target::prior::Parameters>,
        }
        /// Samples exp(-U/T) exactly, by Metropolis-adjusted Langevin steps.
        ///
        /// Proposes `w' = w - (ε/2M)∇U(w) + sqrt(εT/M) η` and accepts with probability min(1, p(w')q(w'→w)/p(w)q(w→w')) (Besag 1994; Roberts & Tweedie 1996). That is hybrid Monte Carlo of one velocity-Verlet step of δt = sqrt(ε), as which it is computed: ΔH/T is the logarithm of the acceptance ratio. Step size and masses adapt in burn-in as those of sampler::hmc do.
        Mala = "mala"() of crate::sampler::REGISTRY {
            /// Step size ε (the first one, if adapted). (number, > 0; if absent: found at the start)
            step = "step": Number,
            /// Acceptance that the step size is adapted to; 0.574 is best in high dimension (Roberts & Rosenthal 1998). (number, 0 < x < 1; default `0.574`)
            acceptance = "acceptance": Number,
            /// Adapt the step size during burn-in. (true or false; default `true`)
            adapt = "adapt": Flag,
            /// Adapt the masses during burn-in, if it has at least 50 steps and the step size is adapted. (true or false; default `true`)
            adapt_mass = "adapt_mass": Flag,
            /// Directions along which masses differ from a diagonal, at most, learnt in burn-in: for parameters that depend on each other, as those of regressions, and networks with a few stiff directions. Each costs two passes over the parameters per gradient, and four draws of memory with as many gradients. Not within walls, nor with minibatches. (integer, 0 … 64; if absent: 8 in `sample` and `sweep` of at most 100 parameters (not of hmc), else 0)
            rank = "rank": Count,
            /// M_i to begin with: `parameters(\[\[…]])`, a number for each parameter. (Parameters; if absent: 1 for each)
            masses = "masses": Handle<crate::target::prior::Parameters>,
        }
        /// Samples exp(-U/T) exactly, by microcanonical trajectories that are accepted or rejected (MAMS).
        ///
        /// A point moves at constant speed in a random direction, which the gradient turns, and is accepted with probability min(1, exp(-Δ)), where Δ is the change of U/T and of the logarithm of volume: deterministic, reversible, and exact at any step size (Robnik, Cohn-Gordon & Seljak 2025). Its speed does not depend on the energy. Steps are of the minimal-norm scheme, with two gradients each over all examples. Trajectories have a random length, uniform up to twice the mean.
        ///
        /// Burn-in begins with trajectories of sampler::hmc, which find the typical set from anywhere. Then the step size is adapted to `acceptance` by dual averaging, and the variances of the parameters are collected for diagonal masses, as of sampler::hmc. The length is then `length` times √N in units of the standard deviations. `leapfrog` in the sample statistics is the number of gradients of a trajectory, `energy_error` is Δ, and ⟨exp(-Δ)⟩ = 1 (`exp_energy_error`). At the walls of prior::uniform_box the direction is reflected. Needs two parameters or more.
        Mams = "mams"() of crate::sampler::REGISTRY {
            /// Mean length of a trajectory, over √N standard deviations: the distance from the mean at which the chain spends its time. (number, > 0; default `1.0`)
            length = "length": Number,
            /// Mean number of steps per trajectory, in the place of `length`. (number, ≥ 1; if absent: by `length`; 10 until masses are given or adapted)
            steps = "steps": Number,
            /// Distance of a step, in standard deviations where masses are adapted (the first one, if adapted). (number, > 0; if absent: found at the start)
            dt = "dt": Number,
            /// Acceptance that the step size is adapted to. (number, 0 < x < 1; default `0.9`)
            acceptance = "acceptance": Number,
            /// Adapt the step size during burn-in. (true or false; default `true`)
            adapt = "adapt": Flag,
            /// Adapt the masses during burn-in, if it has at least 50 steps and the step size is adapted. (true or false; default `true`)
            adapt_mass = "adapt_mass": Flag,
            /// Directions along which masses differ from a diagonal, at most, learnt in burn-in: for parameters that depend on each other, as those of regressions, and networks with a few stiff directions. Each costs two passes over the parameters per gradient, and four draws of memory with as many gradients. Not within walls, nor with minibatches. (integer, 0 … 64; if absent: 8 in `sample` and `sweep` of at most 100 parameters (not of hmc), else 0)
            rank = "rank": Count,
            /// M_i to begin with: `parameters(\[\[…]])`, a number for each parameter. (Parameters; if absent: 1 for each)
            masses = "masses": Handle<crate::target::prior::Parameters>,
        }
        /// Samples exp(-U/T) as δt → 0, by microcanonical Langevin dynamics (MCLMC).
        ///
        /// A point moves at constant speed, |u| = 1; the gradient turns its direction, and noise lets it forget: `u ← (u + νη)/|u + νη|` with ν² = (e^(2δt/L) - 1)/N (Robnik, De Luca, Silverstein & Seljak 2023; Robnik & Seljak 2024). One step of the minimal-norm scheme takes two gradients over all examples, and nothing is rejected. What a finite step adds to the law grows with Var(Δ)/N, where Δ is the error of the energy in a step (`energy_variance`): the step size is adapted to `variance` in burn-in. sampler::mams is the same with rejections, and exact.
        ///
        /// Burn-in begins with trajectories of sampler::hmc, which find the typical set from anywhere. The variances of the parameters are collected in burn-in for diagonal masses, as of sampler::hmc; L is then `length` times √N in units of the standard deviations. At the walls of prior::uniform_box the direction is reflected. Needs two parameters or more.
        Mclmc = "mclmc"() of crate::sampler::REGISTRY {
            /// Var(Δ)/N that the step size is adapted to. The step goes with its sixth root, and what it adds to the law with its third. The authors take 5e-4: the energy of a Gaussian of 50 dimensions and condition 4 is then 2.4 % too small. (number, > 0; default `1e-6`)
            variance = "variance": Number,
            /// L, the distance after which the direction is forgotten, over √N standard deviations. (number, > 0; default `1.0`)
            length = "length": Number,
            /// Steps after which the direction is forgotten, in the place of `length`. (number, ≥ 1; if absent: by `length`; 100 until masses are given or adapted)
            steps = "steps": Number,
            /// Distance of a step, in standard deviations where masses are adapted (the first one, if adapted). (number, > 0; if absent: found at the start)
            dt = "dt": Number,
            /// Adapt the step size during burn-in. (true or false; default `true`)
            adapt = "adapt": Flag,
            /// Adapt the masses during burn-in, if it has at least 50 steps and the step size is adapted. (true or false; default `true`)
            adapt_mass = "adapt_mass": Flag,
            /// Directions along which masses differ from a diagonal, at most, learnt in burn-in: for parameters that depend on each other, as those of regressions, and networks with a few stiff directions. Each costs two passes over the parameters per gradient, and four draws of memory with as many gradients. Not within walls, nor with minibatches. (integer, 0 … 64; if absent: 8 in `sample` and `sweep` of at most 100 parameters (not of hmc), else 0)
            rank = "rank": Count,
            /// M_i to begin with: `parameters(\[\[…]])`, a number for each parameter. (Parameters; if absent: 1 for each)
            masses = "masses": Handle<crate::target::prior::Parameters>,
        }
        /// Samples exp(-U/T) exactly, by a random walk: proposes `w + σ η`, accepted with probability min(1, exp(-ΔU/T)).
        ///
        /// Metropolis et al. (1953); Iwagaki & Watanabe, §2.4. U is computed over all examples, in double precision; no gradient is needed, but for the virial thermometer, which takes one every `thermometer` steps and holds its last value in between.
        Metropolis = "metropolis"() of crate::sampler::REGISTRY {
            /// σ, the standard deviation of a proposal, per parameter; fixed if it is given. (number, > 0; if absent: adapted during burn-in)
            sigma = "sigma": Number,
            /// Acceptance that σ is adapted to; 0.234 is best in high dimension (Roberts, Gelman & Gilks 1997). (number, 0 < x < 1; default `0.234`)
            acceptance = "acceptance": Number,
            /// Steps between two gradients for the virial thermometer. (integer, ≥ 1; default `50`)
            thermometer = "thermometer": Count,
        }
        /// Samples exp(-U/T) of a deep linear network exactly: draws every layer from its Gaussian law given the others, from the first layer to the last and back.
        ///
        /// Geman & Geman (1984), on blocks. With y = A W B x, the law of the layer W given the layers behind it (A) and before it (B) is Gaussian with the precision (2s/T) AᵀA ⊗ B⟨x xᵀ⟩Bᵀ + prior, which the eigenvectors of both factors make diagonal. There is no step size, nothing to tune, and no direction is stiff: where the curvatures of a product of layers span nine decades, as in the problems of Hitchcock & Hoogland (2025), trajectories stand still and sweeps relax. For `model::deep_linear` with the squared error of real targets under a Gaussian prior (`prior::gaussian`, `prior::l2`, `prior::localised`, and so in `llc`). A step is a sweep: some 10 d²r operations per layer of width d, r the narrowest layer behind or before it, on this machine, whatever the number of examples.
        Gibbs = "gibbs"() of crate::sampler::REGISTRY {
        }
    }
}

/// Builders of `observable::…`.
pub mod observable {
    use super::super::*;
    pub use crate::observable::measure;
    use std::sync::Arc;

    builders! { "observable", Arc<Box<dyn crate::observable::Observable>>;
        /// The cost L(w): mean loss per training example, over all of them.
        ///
        /// Costs a forward pass over the training data per record.
        Cost = "cost"() of crate::observable::REGISTRY {
        }
        /// The energy U(w) = s·L(w) + R(w), over all training examples.
        Energy = "energy"() of crate::observable::REGISTRY {
        }
        /// The fraction of misclassified examples on a split (Zambon 2026, eq. 4).
        ///
        /// Its trace is called `error` on the training split, `error_test` on the test split.
        Error = "error"() of crate::observable::REGISTRY {
            /// Which part of the data set. ("train" · "test" · "validation"; default `train`)
            split = "split": OneOf<choices::Split>,
        }
        /// The mean loss per example on a split.
        ///
        /// Its trace is called `loss` on the training split (the same as `cost`), `loss_test` on the test split.
        Loss = "loss"() of crate::observable::REGISTRY {
            /// Which part of the data set. ("train" · "test" · "validation"; default `train`)
            split = "split": OneOf<choices::Split>,
        }
        /// |w|², the squared norm of all parameters.
        Norm2 = "norm2"() of crate::observable::REGISTRY {
        }
        /// |∇U|², the squared norm of the gradient of the energy over all training examples.
        ///
        /// Its mean is T⟨ΔU⟩, T times the mean trace of the Hessian (integrate ∇·(e^{-U/T} ∇U); no walls). Costs a gradient per record.
        GradientNorm2 = "gradient_norm2"() of crate::observable::REGISTRY {
        }
        /// |w - w_start|², the squared distance to the start of the run.
        Distance2 = "distance2"() of crate::observable::REGISTRY {
        }
        /// w·w_start / (|w| |w_start|), the overlap with the start of the run.
        Overlap = "overlap"() of crate::observable::REGISTRY {
        }
        /// A parameter: one number w_i by its index in the flat vector, or all values of a tensor by its name.
        ///
        /// The trace is called `w` with the index, as `w0`, or as the tensor. Of a parameter with bounds it has the values, not the coordinates: `sigma`, not `log_sigma`.
        Parameter = "parameter"(which = "which": Anything) of crate::observable::REGISTRY {
        }
        /// (1/N) Σ p_i²/M_i, which is T by equipartition; averaged over the steps since the last record.
        ///
        /// NaN for samplers without momenta.
        KineticTemperature = "kinetic_temperature"() of crate::observable::REGISTRY {
        }
        /// (1/N) Σ (w-c)_i ∂U/∂w_i, c the mean of burn-in, which is T by the virial theorem (no walls); averaged over the steps since the last record.
        ///
        /// It uses the gradient that the sampler has computed anyway. Every summary shows it with a verdict, even when it is not asked for.
        VirialTemperature = "virial_temperature"() of crate::observable::REGISTRY {
        }
        /// Mean acceptance probability since the last record; NaN for samplers that always move.
        Acceptance = "acceptance"() of crate::observable::REGISTRY {
        }
        /// The variance of the minibatch gradient of U, averaged over each tensor of the model (Zambon 2026, Fig. 5c).
        ///
        /// Minibatches are drawn independently. Pseudo-Langevin measures it anyway, at no extra cost. For other samplers it is estimated from `draws` minibatches per record. Its trace has one more dimension, `tensor`.
        GradientVariance = "gradient_variance"() of crate::observable::REGISTRY {
            /// m, examples per minibatch. (integer, ≥ 1; if absent: the sampler's batch, or 100)
            batch = "batch": Count,
            /// Minibatches per estimate. (integer, 2 … 10000; default `50`)
            draws = "draws": Count,
        }
        /// The loss ℓ_i(w) of single examples: rows of a split, spread evenly over it.
        ///
        /// Its trace is called example_losses, or example_losses_test for the test split, and has one more dimension, whose labels are the rows ("7"), or rows and positions ("7.31"); `data.row(split, 7)` shows one. With `observe: \[observable::example_losses()]` an estimate of a learning coefficient has `influence()`, `susceptibilities()` and `singular_fluctuation()`. Costs a forward pass over these rows per record.
        ExampleLosses = "example_losses"() of crate::observable::REGISTRY {
            /// The split. ("train" · "test" · "validation"; default `train`)
            split = "split": OneOf<choices::Split>,
            /// How many rows: of n, every (n/rows)-th. (integer, ≥ 1; default `100`)
            rows = "rows": Count,
            /// What an example is: a row, whose loss is the mean over its positions, or each position of a row (a token of a sequence). ("row" · "position"; default `row`)
            each = "each": OneOf<choices::Each>,
        }
        /// The fraction of examples on a split whose label is not among the k largest outputs; of sequences, of all positions. An output as large as that of the label counts as larger.
        ///
        /// Its trace is called `top5_error` on the training split, `top5_error_test` on the test split. Costs a forward pass over the split per record.
        TopError = "top_error"(k = "k": Count) of crate::observable::REGISTRY {
            /// Which part of the data set. ("train" · "test" · "validation"; default `train`)
            split = "split": OneOf<choices::Split>,
        }
    }
}

/// What options may be one of.
pub mod choices {
    use super::super::one_of;

    one_of! {
        /// What `scale` may be.
        Scale { Unit = "unit", Standard = "standard", None = "none" }
        /// What `task` may be.
        Task { Classification = "classification", Regression = "regression" }
        /// What `header` may be.
        Header { Auto = "auto", Yes = "yes", No = "no" }
        /// What `level` may be.
        Level { Characters = "characters", Bytes = "bytes" }
        /// What `dtype` may be.
        Dtype { Uint16 = "uint16", Uint32 = "uint32" }
        /// What `activation` may be.
        Activation { Relu = "relu", Tanh = "tanh", Logistic = "logistic", Gelu = "gelu", Identity = "identity" }
        /// What `init` may be.
        Init { Pytorch = "pytorch", He = "he", Glorot = "glorot", Lecun = "lecun", Normal = "normal", Uniform = "uniform", Zeros = "zeros" }
        /// What `law` may be.
        Law { He = "he", Glorot = "glorot", Lecun = "lecun" }
        /// What `early_stopping` may be.
        EarlyStopping { None = "none", Loss = "loss", Error = "error" }
        /// What `preconditioner` may be.
        Preconditioner { Frozen = "frozen", Running = "running" }
        /// What `between` may be.
        Between { Parameters = "parameters", Replicas = "replicas" }
        /// What `form` may be.
        OhzekiIchikiForm { Sgld = "sgld", Rmsprop = "rmsprop", Adam = "adam" }
        /// What `form` may be.
        SghmcForm { Correct = "correct", Hitchcock2025 = "hitchcock2025" }
        /// What `form` may be.
        SgnhtForm { Correct = "correct", Ding2014 = "ding2014", Hitchcock2025 = "hitchcock2025" }
        /// What `masses` may be.
        Masses { Collective = "collective", Noise = "noise", Uniform = "uniform" }
        /// What `split` may be.
        Split { Train = "train", Test = "test", Validation = "validation" }
        /// What `each` may be.
        Each { Row = "row", Position = "position" }
        /// What `energy` may be.
        Energy { Mean = "mean", Sum = "sum", Tempered = "tempered" }
        /// What `temper` may be.
        Temper { Energy = "energy", Likelihood = "likelihood", Prior = "prior" }
        /// What `keep_as` may be.
        KeepAs { F32 = "f32", F16 = "f16" }
        /// What `pairs` may be.
        Pairs { Alternating = "alternating", Random = "random" }
        /// What `baseline` may be.
        Baseline { Paired = "paired", Full = "full", FirstBatch = "first_batch" }
        /// What `data` may be.
        Data { Rows = "rows", Moments = "moments" }
        /// What `structure` may be.
        Structure { Hessian = "hessian", Full = "full", Kronecker = "kronecker", Diagonal = "diagonal", LastLayer = "last_layer" }
        /// What `method` may be.
        Method { Auto = "auto", Exact = "exact", Lanczos = "lanczos" }
    }
}

/// Builders of verbs.
pub mod verbs {
    use super::super::*;
    use std::sync::Arc;

    calls! {
        /// The distribution to sample: `p(w) ∝ exp(-U(w)/T)` with `U = s·L(w) + R(w)`.
        ///
        /// L is the mean loss over the n training examples, s the likelihood scale (`energy`), R the prior energy. The temperature T belongs to the run. Instead of model and data set, a `potential::…` may be given. `print(target)` shows n, N, s and the prior.
        Target, target(model: Arc<dyn crate::model::Model>, dataset: Arc<crate::dataset::Dataset>) = Into::into, crate::target::build::TARGET => Arc<crate::target::Target> {
            /// Loss per example: "cross_entropy" -ln softmax(output)\[label] · "squared_error" |target - output|² summed over components (without ½) · one of the namespace `loss` · a closure |out, y| … of the outputs and the target (of classes y\[0] is the label). (a name, a loss::… or a closure |out, y| …; if absent: "cross_entropy" for classes, "squared_error" for real targets)
            loss = "loss": Anything,
            /// The likelihood scale s in U = s·L + R: "mean" 1 (Zambon) · "sum" n (Baldock, Iwagaki, Ohzeki) · "tempered" nβ with β = beta0/ln n (learning coefficient). ("mean" · "sum" · "tempered"; default `mean`)
            energy = "energy": OneOf<choices::Energy>,
            /// β0 of "tempered". (number, > 0; default `1`)
            beta0 = "beta0": Number,
            /// The prior energy R; see the namespace `prior`. A map has a prior for each part of the parameters, "*" for all others: `#{ w1: prior::normal(0, "tau"), "*": prior::normal(0, 1), tau: prior::half_cauchy(1) }`. A name that only other priors have is a parameter of its own, sampled with the weights. (a prior, or a map of priors by name; if absent: prior::none())
            prior = "prior": Anything,
        }
        /// The distribution to sample: `p(w) ∝ exp(-U(w)/T)` with `U = s·L(w) + R(w)`.
        ///
        /// L is the mean loss over the n training examples, s the likelihood scale (`energy`), R the prior energy. The temperature T belongs to the run. Instead of model and data set, a `potential::…` may be given. `print(target)` shows n, N, s and the prior.
        TargetOfPotential, target_of_potential(potential: Arc<dyn crate::target::Potential>) = crate::verb::Either::Second, crate::target::build::TARGET => Arc<crate::target::Target> {
            /// Loss per example: "cross_entropy" -ln softmax(output)\[label] · "squared_error" |target - output|² summed over components (without ½) · one of the namespace `loss` · a closure |out, y| … of the outputs and the target (of classes y\[0] is the label). (a name, a loss::… or a closure |out, y| …; if absent: "cross_entropy" for classes, "squared_error" for real targets)
            loss = "loss": Anything,
            /// The likelihood scale s in U = s·L + R: "mean" 1 (Zambon) · "sum" n (Baldock, Iwagaki, Ohzeki) · "tempered" nβ with β = beta0/ln n (learning coefficient). ("mean" · "sum" · "tempered"; default `mean`)
            energy = "energy": OneOf<choices::Energy>,
            /// β0 of "tempered". (number, > 0; default `1`)
            beta0 = "beta0": Number,
            /// The prior energy R; see the namespace `prior`. A map has a prior for each part of the parameters, "*" for all others: `#{ w1: prior::normal(0, "tau"), "*": prior::normal(0, 1), tau: prior::half_cauchy(1) }`. A name that only other priors have is a parameter of its own, sampled with the weights. (a prior, or a map of priors by name; if absent: prior::none())
            prior = "prior": Anything,
        }
        /// A target of known law by its name: "gaussian", "double_well", "banana", "funnel", "eight_schools", "normal_crossing", "rosenbrock", "student_t", "mixture", "gaussian_mixture".
        ///
        /// `target::analytic("funnel", #{ dim: 5 })` is `target(potential::funnel(#{ dim: 5 }))`; the options are those of the potential and those of `target`.
        Analytic, analytic(name: String) = Into::into, crate::target::build::ANALYTIC => Arc<crate::target::Target> {
        }
        /// Optimise parameters on L + R/s: starting points for samplers, and the baseline they are compared with.
        ///
        /// Every epoch's learning rate, mean minibatch loss, and loss and error on the test and validation splits are kept: `trained.history("error_test")`. With early stopping the best parameters on the validation split are kept, otherwise the last.
        Train, train(target: Arc<crate::target::Target>, optimizer: Arc<crate::simulation::optimizer::Optimizer>) = Into::into, crate::simulation::train::TRAIN => Arc<crate::simulation::trained::Trained> {
            /// Independent training runs, from different initial parameters. (integer, 1 … 1000000; default `1`)
            chains = "chains": Count,
            /// Initial parameters. (Parameters; if absent: drawn by the model)
            start = "start": Handle<crate::target::prior::Parameters>,
            /// Epochs after which parameters are written to a file of their own, for `trained.checkpoint(epoch)`; 0 is the start. (array of integers, ≥ 0; if absent: none)
            checkpoints = "checkpoints": Counts,
            /// Seed of this training. (integer, ≥ 0; if absent: from --seed and the name of the training)
            seed = "seed": Count,
            /// Name of the training and of its folder. (string; if absent: train-1, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// Sample at one temperature (a number or a schedule).
        ///
        /// Chains run in parallel, are recorded, saved while they run, and can be resumed bit for bit, with `--resume` or the option `resume`. A chain that meets NaN or leaves its region is stopped, reported and left out of averages.
        Sample, sample(target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = Into::into, crate::simulation::verbs::SAMPLE => Arc<crate::simulation::run::Run> {
            /// T, a number or a schedule. (number or schedule, > 0; default `1`)
            temperature = "temperature": Rate,
            /// What is divided by T: all of U, exp(-(s·L + R)/T); the likelihood only, exp(-s·L/T - R); or the prior only, exp(-s·L - R/T). ("energy" · "likelihood" · "prior"; default `energy`)
            temper = "temper": OneOf<choices::Temper>,
            /// Steps per chain, burn-in included; with `until` those up to the first look. (integer, 1 … 100000000000000; if absent: it must be given, unless `until` is: 1000 steps then)
            steps = "steps": Count,
            /// Go on after `steps` until nothing is missing at any temperature: R̂ and ESS of every observable reach these numbers, and the error of the thermometer and the round trips of a ladder are what *converged* asks for. `#{}` takes the numbers of the verdict. It is looked at after `steps` steps, and each time that there are a quarter more. Draws are those of one run of that length. `burn_in` counts from `steps`, and samplers adapt during it; where a look finds that the beginning of the draws differs from their end, by more than four standard errors, burn-in ends at that look. A run that has ended goes on with `resume` and a larger `at_most`. (map of rhat: number, > 1; default 1.01 · ess: number, > 0; default 400 · at_most: integer, 1 … 100000000000000; default 100 times `steps`; if absent: it ends after `steps`)
            until = "until": Entries,
            /// Chains per temperature. (integer, 1 … 1000000; default `4`)
            chains = "chains": Count,
            /// Where chains start: a result of `train`, `run.params()` or `parameters(\[…])`; chains take its vectors in turn. (Parameters; if absent: drawn by the model, differently for each chain)
            start = "start": Handle<crate::target::prior::Parameters>,
            /// Fraction of the steps (if below 1) or number of steps (if 1 or more) that is discarded; adaptive samplers adapt during it. (number, ≥ 0; default `0.5`)
            burn_in = "burn_in": Number,
            /// When to make a record: every so many steps, or a trigger. (integer or trigger; default `100`)
            every = "every": When,
            /// What to record. (array of Observables; if absent: \[observable::cost(), observable::norm2()])
            observe = "observe": Handles<Box<dyn crate::observable::Observable>>,
            /// When to keep the parameters themselves, after burn-in: every so many steps, or a trigger. They go to draws.zarr in the run's folder, which xarray opens; `run.draw`, `run.kept` and `observe` read them. A multiple of `every` keeps what is recorded. (integer or trigger; if absent: none)
            keep = "keep": When,
            /// Keep so many draws per chain, evenly spaced after burn-in; in the place of `keep`. (integer, 1 … 10000000; if absent: none)
            keep_draws = "keep_draws": Count,
            /// Keep only these tensors of the model. `run.kept(name, chain)` has them; `run.draw`, `observe`, `overlaps`, `two_time` and `predict` need all. (array of names; if absent: all)
            keep_tensors = "keep_tensors": Anything,
            /// How draws are kept: as they are, or in half precision. ("f32" · "f16"; default `f32`)
            keep_as = "keep_as": OneOf<choices::KeepAs>,
            /// Splits ("train", "test", "validation") on which the posterior prediction is averaged over the recorded draws after burn-in, without keeping them; see run.prediction. (name of a split, or array of them; if absent: none)
            predict = "predict": Anything,
            /// A chain whose |w| exceeds this many times max(|w_start|, √N) has left its region and is stopped as failed. (number, > 0; default `1000`)
            region = "region": Number,
            /// Seed of this run. Runs with the same seed share their noise, step by step. (integer, ≥ 0; if absent: from --seed and the name of the run)
            seed = "seed": Count,
            /// Name of the run and of its folder. (string; if absent: sample-1, sweep-1, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// Sample at several temperatures at once, with `chains` chains each.
        ///
        /// The trace store has the dims chain, draw, temperature.
        Sweep, sweep(target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = Into::into, crate::simulation::verbs::SWEEP => Arc<crate::simulation::run::Run> {
            /// The temperatures; each has its own chains. (array of numbers, > 0; must be given)
            temperatures = "temperatures": Numbers,
            /// What is divided by T: all of U, exp(-(s·L + R)/T); the likelihood only, exp(-s·L/T - R); or the prior only, exp(-s·L - R/T). ("energy" · "likelihood" · "prior"; default `energy`)
            temper = "temper": OneOf<choices::Temper>,
            /// Steps per chain, burn-in included; with `until` those up to the first look. (integer, 1 … 100000000000000; if absent: it must be given, unless `until` is: 1000 steps then)
            steps = "steps": Count,
            /// Go on after `steps` until nothing is missing at any temperature: R̂ and ESS of every observable reach these numbers, and the error of the thermometer and the round trips of a ladder are what *converged* asks for. `#{}` takes the numbers of the verdict. It is looked at after `steps` steps, and each time that there are a quarter more. Draws are those of one run of that length. `burn_in` counts from `steps`, and samplers adapt during it; where a look finds that the beginning of the draws differs from their end, by more than four standard errors, burn-in ends at that look. A run that has ended goes on with `resume` and a larger `at_most`. (map of rhat: number, > 1; default 1.01 · ess: number, > 0; default 400 · at_most: integer, 1 … 100000000000000; default 100 times `steps`; if absent: it ends after `steps`)
            until = "until": Entries,
            /// Chains per temperature. (integer, 1 … 1000000; default `4`)
            chains = "chains": Count,
            /// Where chains start: a result of `train`, `run.params()` or `parameters(\[…])`; chains take its vectors in turn. (Parameters; if absent: drawn by the model, differently for each chain)
            start = "start": Handle<crate::target::prior::Parameters>,
            /// Fraction of the steps (if below 1) or number of steps (if 1 or more) that is discarded; adaptive samplers adapt during it. (number, ≥ 0; default `0.5`)
            burn_in = "burn_in": Number,
            /// When to make a record: every so many steps, or a trigger. (integer or trigger; default `100`)
            every = "every": When,
            /// What to record. (array of Observables; if absent: \[observable::cost(), observable::norm2()])
            observe = "observe": Handles<Box<dyn crate::observable::Observable>>,
            /// When to keep the parameters themselves, after burn-in: every so many steps, or a trigger. They go to draws.zarr in the run's folder, which xarray opens; `run.draw`, `run.kept` and `observe` read them. A multiple of `every` keeps what is recorded. (integer or trigger; if absent: none)
            keep = "keep": When,
            /// Keep so many draws per chain, evenly spaced after burn-in; in the place of `keep`. (integer, 1 … 10000000; if absent: none)
            keep_draws = "keep_draws": Count,
            /// Keep only these tensors of the model. `run.kept(name, chain)` has them; `run.draw`, `observe`, `overlaps`, `two_time` and `predict` need all. (array of names; if absent: all)
            keep_tensors = "keep_tensors": Anything,
            /// How draws are kept: as they are, or in half precision. ("f32" · "f16"; default `f32`)
            keep_as = "keep_as": OneOf<choices::KeepAs>,
            /// Splits ("train", "test", "validation") on which the posterior prediction is averaged over the recorded draws after burn-in, without keeping them; see run.prediction. (name of a split, or array of them; if absent: none)
            predict = "predict": Anything,
            /// A chain whose |w| exceeds this many times max(|w_start|, √N) has left its region and is stopped as failed. (number, > 0; default `1000`)
            region = "region": Number,
            /// Seed of this run. Runs with the same seed share their noise, step by step. (integer, ≥ 0; if absent: from --seed and the name of the run)
            seed = "seed": Count,
            /// Name of the run and of its folder. (string; if absent: sample-1, sweep-1, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// Replica exchange: sample at all temperatures of a ladder at once, and let neighbours swap theirs.
        ///
        /// A swap of the replicas on rungs i and j is accepted with probability min(1, exp\[(1/T_i - 1/T_j)(E_i - E_j)]), which leaves the law of every rung unchanged (Swendsen & Wang 1986; Baldock 2019, algorithm 1); E is what T divides, over all examples. Temperatures move, parameters stay. So a replica that is stuck at a low temperature escapes at a high one and comes back elsewhere.
        ///
        /// With any sampler: exact ones stay exact, also between swaps; those that use minibatches keep their bias at each temperature, and swap by the energy over all examples. Step sizes, lengths and masses that a sampler adapts belong to the rung: they are adapted there during burn-in, and frozen.
        ///
        /// The run has the dims chain, draw, temperature, as a sweep: a chain is an independent ladder, its draws at a temperature those of whichever replica was there (`replica`), with the energy `tempered_energy`. `run.ladder()` shows how well the ladder works, `evidence(run)` gives ln Z.
        Exchange, exchange(target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = Into::into, crate::simulation::verbs::EXCHANGE => Arc<crate::simulation::run::Run> {
            /// The ladder, at least two temperatures; logspace(1.0, 1000.0, 12) is a geometric one. (array of numbers, > 0; must be given)
            temperatures = "temperatures": Numbers,
            /// Put one more rung on top, at β = 1/T = 0, whose parameters are drawn from the prior afresh at every step; evidence needs it. (true or false; default `false`)
            prior_rung = "prior_rung": Flag,
            /// Rounds of doubling length, during burn-in, after each of which the rungs between the ends are respaced so that all rejections are equal. (integer, 0 … 16; default `0`)
            tune = "tune": Count,
            /// Steps from one swap to the next. (integer, ≥ 1; if absent: 1 for samplers that accept or reject, else 100)
            swap_every = "swap_every": Count,
            /// Which neighbours try to swap: even and odd pairs in turn (Syed et al. 2022), or as many random pairs as rungs (Baldock 2019). ("alternating" · "random"; default `alternating`)
            pairs = "pairs": OneOf<choices::Pairs>,
            /// What is divided by T: s·L only, exp(-s·L/T - R), so that the hot end is the prior; or all of U, as sample and sweep do unless told; or R only. ("energy" · "likelihood" · "prior"; default `likelihood`)
            temper = "temper": OneOf<choices::Temper>,
            /// Steps of rough minimisation of U before burn-in, from each replica's start (Baldock 2019, algorithm 2). (integer, ≥ 0; default `0`)
            minimise = "minimise": Count,
            /// Start at draws from the prior instead of the model's initial parameters; not with `start`. (true or false; default `false`)
            from_prior = "from_prior": Flag,
            /// Steps per chain, burn-in included; with `until` those up to the first look. (integer, 1 … 100000000000000; if absent: it must be given, unless `until` is: 1000 steps then)
            steps = "steps": Count,
            /// Go on after `steps` until nothing is missing at any temperature: R̂ and ESS of every observable reach these numbers, and the error of the thermometer and the round trips of a ladder are what *converged* asks for. `#{}` takes the numbers of the verdict. It is looked at after `steps` steps, and each time that there are a quarter more. Draws are those of one run of that length. `burn_in` counts from `steps`, and samplers adapt during it; where a look finds that the beginning of the draws differs from their end, by more than four standard errors, burn-in ends at that look. A run that has ended goes on with `resume` and a larger `at_most`. (map of rhat: number, > 1; default 1.01 · ess: number, > 0; default 400 · at_most: integer, 1 … 100000000000000; default 100 times `steps`; if absent: it ends after `steps`)
            until = "until": Entries,
            /// Chains per temperature. (integer, 1 … 1000000; default `4`)
            chains = "chains": Count,
            /// Where chains start: a result of `train`, `run.params()` or `parameters(\[…])`; chains take its vectors in turn. (Parameters; if absent: drawn by the model, differently for each chain)
            start = "start": Handle<crate::target::prior::Parameters>,
            /// Fraction of the steps (if below 1) or number of steps (if 1 or more) that is discarded; adaptive samplers adapt during it. (number, ≥ 0; default `0.5`)
            burn_in = "burn_in": Number,
            /// When to make a record: every so many steps, or a trigger. (integer or trigger; if absent: at every swap)
            every = "every": When,
            /// What to record. (array of Observables; if absent: \[observable::cost(), observable::norm2()])
            observe = "observe": Handles<Box<dyn crate::observable::Observable>>,
            /// When to keep the parameters themselves, after burn-in: every so many steps, or a trigger. They go to draws.zarr in the run's folder, which xarray opens; `run.draw`, `run.kept` and `observe` read them. A multiple of `every` keeps what is recorded. (integer or trigger; if absent: none)
            keep = "keep": When,
            /// Keep so many draws per chain, evenly spaced after burn-in; in the place of `keep`. (integer, 1 … 10000000; if absent: none)
            keep_draws = "keep_draws": Count,
            /// Keep only these tensors of the model. `run.kept(name, chain)` has them; `run.draw`, `observe`, `overlaps`, `two_time` and `predict` need all. (array of names; if absent: all)
            keep_tensors = "keep_tensors": Anything,
            /// How draws are kept: as they are, or in half precision. ("f32" · "f16"; default `f32`)
            keep_as = "keep_as": OneOf<choices::KeepAs>,
            /// Splits ("train", "test", "validation") on which the posterior prediction is averaged over the recorded draws after burn-in, without keeping them; see run.prediction. (name of a split, or array of them; if absent: none)
            predict = "predict": Anything,
            /// A chain whose |w| exceeds this many times max(|w_start|, √N) has left its region and is stopped as failed. (number, > 0; default `1000`)
            region = "region": Number,
            /// Seed of this run. Runs with the same seed share their noise, step by step. (integer, ≥ 0; if absent: from --seed and the name of the run)
            seed = "seed": Count,
            /// Name of the run and of its folder. (string; if absent: sample-1, sweep-1, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// Measure how fast a sampler steps on a target, without recording anything.
        ///
        /// Entries: `seconds_per_step` (of all chains), `steps_per_second` (of single chains, summed), `floor_seconds` (the matrix products of one step alone, in the fastest of several ways), `limit_seconds` (their floating point operations at the rate of the machine's best product), `normals_per_second`, `needed_bytes`, `peak_bytes`, `parameters`, `chains`, `threads`; with `observe` also `seconds_per_record`, by name. `ergodic bench` runs a fixed list of these; `ergodic docs performance` says what to do with the numbers.
        Benchmark, benchmark(target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = Into::into, crate::simulation::benchmark::BENCHMARK => serde_json::Value {
            /// Chains that step side by side. (integer, 1 … 1000000; default `1`)
            chains = "chains": Count,
            /// T of all chains. (number, > 0; default `1`)
            temperature = "temperature": Number,
            /// Seconds to measure, after a quarter of that to warm up. (number, 0.01 … 3600; default `2`)
            seconds = "seconds": Number,
            /// Where chains start. (Parameters; if absent: drawn by the model)
            start = "start": Handle<crate::target::prior::Parameters>,
            /// Observables whose cost per record is measured, too, each for a tenth of the seconds. (array of Observables; if absent: none)
            observe = "observe": Handles<Box<dyn crate::observable::Observable>>,
        }
        /// Test the assumptions of pseudo-Langevin along short trajectories (Zambon et al. 2026, §III.1 and Fig. 3a to c).
        ///
        /// `ks_fraction`: of Kolmogorov–Smirnov tests of the scaled minibatch noise of single parameters against N(0,1), those with p > 0.05 (0.95 if it is normal with the V in use; the paper has 0.946). `noise`: its distribution, `x` and `density`, and `by_stop`. `correlation`: distributions over pairs of parameters, `rms` and `largest_eigenvalue` of the minibatch noise, of white noise and of both in their proportion in the heat bath (eq. 24), which should look like white noise. `autocorrelation` of the noise in time, which should vanish from lag 1 on. `ratio`: distribution of 𝒯. Compare averages with those of hybrid Monte Carlo by `compare(reference, run)`.
        Validate, validate(target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = Into::into, crate::simulation::validate::VALIDATE => serde_json::Value {
            /// Temperature T. (number, > 0; default `1`)
            temperature = "temperature": Number,
            /// Where chains start; preferably in equilibrium. (Parameters; if absent: drawn by the model)
            start = "start": Handle<crate::target::prior::Parameters>,
            /// Independent trajectories. (integer, 1 … 1000; default `3`)
            chains = "chains": Count,
            /// How often each is stopped to look at the noise. (integer, 1 … 1000; default `6`)
            stops = "stops": Count,
            /// Steps between two stops. (integer, ≥ 1; default `1000`)
            steps = "steps": Count,
            /// Minibatch gradients at each stop. (integer, 20 … 10000; default `250`)
            draws = "draws": Count,
            /// Parameters whose noise is tested, at most; evenly spaced. (integer, 2 … 1000000; default `20_000`)
            components = "components": Count,
            /// Parameters whose correlations are computed, at most. (integer, 2 … 1000; default `200`)
            correlated = "correlated": Count,
            /// Largest lag of the autocorrelation, in steps. (integer, 1 … 1000; default `10`)
            lags = "lags": Count,
            /// Seed of the trajectories. (integer, ≥ 0; if absent: from --seed)
            seed = "seed": Count,
            /// Name, and that of the folder of its checkpoint. (string; if absent: validate-1, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// Test the law of a run by short exact chains: do U and the observables drift when hybrid Monte Carlo takes over from its draws?
        ///
        /// The run goes on beyond its end, in memory, at every temperature. Now and then hybrid Monte Carlo over all examples starts from where a chain is and makes a few moves. If the run samples exp(-U/T), no mean changes; otherwise means move towards the right ones. `bias of the run` is what the drift says of the run's mean, -drift/(1 - ρ), where ρ is the part of a deviation that the moves leave. Every line gives the bias that it would have detected. What all chains have missed, such as a mode that none of them visited, no such test can find.
        ///
        /// With `--device` the run goes on there, and the exact chains, in single precision, on this machine: with products in tf32 or bf16 the bias is also what rounding costs. The cost is draws × moves × leapfrog gradients over all examples per temperature. For a run from `open(folder)`: verify(run, target, sampler), which tests U alone. Fields: verdict, says, lines (maps of name, temperature, mean, bias, bias_mcse, relaxed, sigma, power, wrong).
        Verify, verify(run: Arc<crate::simulation::run::Run>) = Into::into, crate::simulation::verify::VERIFY => Arc<crate::simulation::verify::Verification> {
            /// Exact chains per temperature, each started from a state of the run's chains. (integer, 8 … 1000000; default `200`)
            draws = "draws": Count,
            /// Accept/reject moves of each exact chain. (integer, 1 … 10000; default `10`)
            moves = "moves": Count,
            /// Leapfrog steps of each move, each a gradient over all examples. (integer, 1 … 10000; default `10`)
            leapfrog = "leapfrog": Count,
        }
        /// Test the law of a run by short exact chains: do U and the observables drift when hybrid Monte Carlo takes over from its draws?
        ///
        /// The run goes on beyond its end, in memory, at every temperature. Now and then hybrid Monte Carlo over all examples starts from where a chain is and makes a few moves. If the run samples exp(-U/T), no mean changes; otherwise means move towards the right ones. `bias of the run` is what the drift says of the run's mean, -drift/(1 - ρ), where ρ is the part of a deviation that the moves leave. Every line gives the bias that it would have detected. What all chains have missed, such as a mode that none of them visited, no such test can find.
        ///
        /// With `--device` the run goes on there, and the exact chains, in single precision, on this machine: with products in tf32 or bf16 the bias is also what rounding costs. The cost is draws × moves × leapfrog gradients over all examples per temperature. For a run from `open(folder)`: verify(run, target, sampler), which tests U alone. Fields: verdict, says, lines (maps of name, temperature, mean, bias, bias_mcse, relaxed, sigma, power, wrong).
        VerifyOfRun, verify_of_run(run: Arc<crate::simulation::run::Run>, target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = crate::verb::Either::Second, crate::simulation::verify::VERIFY => Arc<crate::simulation::verify::Verification> {
            /// Exact chains per temperature, each started from a state of the run's chains. (integer, 8 … 1000000; default `200`)
            draws = "draws": Count,
            /// Accept/reject moves of each exact chain. (integer, 1 … 10000; default `10`)
            moves = "moves": Count,
            /// Leapfrog steps of each move, each a gradient over all examples. (integer, 1 … 10000; default `10`)
            leapfrog = "leapfrog": Count,
        }
        /// Two runs side by side: every observable of one number that they share, at the temperatures they share, with the relative difference and its size in standard errors.
        ///
        /// The first is the reference: differences are the second minus the first, as `ergodic compare` has them. `comparison.verdicts` are those of both, in this order.
        Compare, compare(reference: Arc<crate::simulation::run::Run>, run: Arc<crate::simulation::run::Run>) = Into::into, crate::simulation::compare::COMPARE => Arc<crate::simulation::compare::Comparison> {
        }
        /// The autocorrelation ρ of an observable of one number after burn-in, per temperature: `#{ temperatures, lags, rho, time }`.
        ///
        /// Lags count records (see the option `every` of the run). `rho` has for each temperature ρ at these lags, `time` the integrated autocorrelation time in records, 1 + 2 Σ ρ, as in the summary. Deviations are from the mean of all chains: where chains disagree, ρ stays above 0. Chains that failed are left out. For a constant, all values are NaN.
        ///
        /// Source: Vehtari et al. 2021, Rank-normalization, folding, and localization, eq. 10.
        Autocorrelation, autocorrelation(run: Arc<crate::simulation::run::Run>, observable: String) = Into::into, crate::simulation::autocorrelation::AUTOCORRELATION => serde_json::Value {
            /// Largest lag, in records; fewer where there are fewer draws. (integer, ≥ 1; default `100`)
            lags = "lags": Count,
        }
        /// P(q), and how alike two replicas are, per temperature: every pair of healthy chains, after every step at which both have kept a draw (the option `keep` of the run).
        ///
        /// `#{ temperatures, overlap, distance2, statistics }`: `overlap` has for each temperature all q = w·w'/(|w||w'|), whose distribution is P(q); `distance2` all |w - w'|²/N. With `split` also `output_overlap`, the same cosine of all outputs on the split (for classes less their mean over the classes, which softmax does not see), `output_distance2`, the mean squared difference of the outputs per row, and, for classes, `disagreement`, the share of examples whose most likely class differs. Values of one pair come one after the other, in the order of the draws: they are correlated as the chains are. A draw without length, as outputs that are all equal, has overlap 0. With `reference` the same fields of draws and that point are in the map `reference`, chain after chain.
        ///
        /// `statistics` has for each of these a map with, per temperature, `mean`, `square` (of q²), `density` (a histogram between `edges`), each also with `_error`, and, for overlaps, `binder` = 1 - ⟨q⁴⟩/3⟨q²⟩² and `binder_error`: 0 where q is Gaussian around 0, 2/3 where it is ±q₀. Errors come from the spread over chains alone, however long each remembers its past, and know that pairs share chains; they need 4 chains (NaN below), and 8 or more to be of much use. Chains are taken as independent: give them different starts, or let an `exchange` mix them; a chain of an exchange is a whole ladder.
        ///
        /// The overlap of weights changes when hidden units are permuted, or when their weights change sign (tanh) or scale (ReLU) in a way that leaves the network the same function: replicas in equivalent minima have a small q all the same, and an ergodic chain of a network whose symmetries are all intact has ⟨q⟩ near 0. The overlap and the distance of outputs do not see these symmetries.
        Overlaps, overlaps(run: Arc<crate::simulation::run::Run>) = Into::into, crate::simulation::overlaps::OVERLAPS => serde_json::Value {
            /// Compare also what the networks say of the inputs of this split. ("train" · "test" · "validation"; if absent: none)
            split = "split": OneOf<choices::Split>,
            /// Compare each draw also with this point, as with the start of the run. Several points belong to the chains as they do in `start`. (Parameters; if absent: none)
            reference = "reference": Handle<crate::target::prior::Parameters>,
            /// Bins of the histograms, between the smallest and the largest value of all temperatures. (integer, 1 … 1000; default `50`)
            bins = "bins": Count,
            /// What was sampled; needed with `split` for runs that were opened from their folder. (Target; if absent: that of the run)
            target = "target": Handle<crate::target::Target>,
        }
        /// Two-time correlations: how much of a draw is left later, w(t) beside w(t_w) of the same chain, from the kept draws (the option `keep` of the run).
        ///
        /// `#{ temperatures, steps, waiting, overlap, overlap_error, distance2, distance2_error }`: for each temperature and each waiting time t_w, of which `waiting` has the steps, q = w(t)·w(t_w)/(|w(t)||w(t_w)|) and |w(t) - w(t_w)|²/N at t_w and all kept draws after it (the last ones of `steps`), means over the chains that did not fail with standard errors from the spread between them. In equilibrium a curve depends on t - t_w alone; where it depends on t_w, the chains age. With `burn_in: 0` and `keep: trigger::logarithmic(…)` the whole relaxation is seen.
        TwoTime, two_time(run: Arc<crate::simulation::run::Run>) = Into::into, crate::simulation::two_time::TWO_TIME => serde_json::Value {
            /// How many waiting times: kept draws, from the first on, evenly spaced in the logarithm of the step. (integer, 1 … 1000; default `5`)
            waiting = "waiting": Count,
        }
        /// What the networks of a run say of new inputs, averaged over the draws that it has kept (its option `keep`).
        ///
        /// Inputs are an array or a tensor \[rows, columns], as they are in the data's file: where the data set was scaled by its training split, they are too. Or they are the name of a split, "test". `#{ mean, sd, draws }`: for each row the mean over the draws and their standard deviation, of the probability of each class, or of each component of a real target. The sd says how far networks differ, not how noisy targets are.
        Predict, predict(run: Arc<crate::simulation::run::Run>, inputs: crate::options::Value) = Into::into, crate::simulation::predict::PREDICT => serde_json::Value {
            /// Which temperature of a sweep or a ladder, by its index. (integer, ≥ 0; default `0`)
            temperature = "temperature": Count,
            /// What was sampled; needed for runs that were opened from their folder. (Target; if absent: that of the run)
            target = "target": Handle<crate::target::Target>,
        }
        /// Leave-one-out cross-validation by Pareto-smoothed importance sampling (PSIS-LOO; Vehtari et al. 2017, 2024), from the draws that a run has kept (its option `keep`).
        ///
        /// How well the posterior of all other training examples predicts each: draws are reweighted by p(y|x,w)^-β, and the largest weights smoothed. The likelihood is that of `run.prediction`: β = s/nT for classes, a Gaussian of variance nT/2s for squared errors. An example is a row, with all its positions; one of weight 0 is no example. The largest weights are the min(S/5, 3√(S/r)) largest of S draws, r being the effective share of draws for the likelihood of the example. Entries: elpd_loo, elpd_se, p_loo, p_se, looic, nll (-elpd_loo/n, to be held against that of a test split), nll_se, draws, examples (their rows); elpd, p, k (k̂) and efficiency (r) of each; largest_k, min(1 - 1/log10 S, 0.7); unreliable, maps of example, k, elpd, p where k̂ is larger or unknown; verdict and reasons: those of the run, and examples whose k̂ is larger. `run.thin(n)` uses one draw of n; `compare(#{ a: loo(r), b: loo(q) })` compares models.
        Loo, loo(run: Arc<crate::simulation::run::Run>) = Into::into, crate::simulation::loo::LOO => Arc<crate::simulation::loo::Loo> {
            /// Which temperature of a sweep or a ladder, by its index. (integer, ≥ 0; default `0`)
            temperature = "temperature": Count,
            /// What was sampled; needed for runs that were opened from their folder. (Target; if absent: that of the run)
            target = "target": Handle<crate::target::Target>,
        }
        /// The parameters that a model begins with: those of its file, of model::onnx; otherwise a draw of its initial law.
        Weights, weights(model: Arc<dyn crate::model::Model>) = Into::into, crate::simulation::weights::WEIGHTS => Arc<crate::target::prior::Parameters> {
            /// Of the draw, where the model has no numbers of its own. (integer, ≥ 0; if absent: from --seed)
            seed = "seed": Count,
        }
        /// Parameters from a file of weights: PyTorch's .pt and .pth, .safetensors, or .npz.
        ///
        /// The file has every tensor of the model and no other floats, in float16, bfloat16, float32 or float64; whole numbers, such as `num_batches_tracked`, are left out with a word. Of a .pt file the state dict is read (`torch.save(model.state_dict(), path)`), without running anything of it. The layers of `model::mlp` are \[out, in] as PyTorch's Linear, so that the state dict of a Sequential loads as it is: `0.weight, 0.bias, 2.weight, …` are w1, b1, w2, …, and a remark says so. `model.save` with the same options writes such files.
        Load, load(model: Arc<dyn crate::model::Model>, path: String) = Into::into, crate::simulation::weights::LOAD => Arc<crate::target::prior::Parameters> {
            /// What each tensor of the file is in the model: #{ "0.weight": "w1", "0.bias": "b1" }. One * on both sides stands for any text: "module.*": "*" takes a beginning away. Names that are not mentioned stay as they are. (map from names in the file to names of the model; if absent: names are the model's; where none of the file is, its tensors are taken by shape and number if there is one reading only)
            rename = "rename": Anything,
            /// Matrices that are transposed on the way, by their names in the file or in the model; a * stands for any text, \[] is none. (array of names, or true for all matrices; if absent: none of those that have the model's names; of others called ….weight those that the layers of the model multiply as \[in, out], since PyTorch's Linear is \[out, in])
            transpose = "transpose": Anything,
            /// Which state dict of a PyTorch file: "state_dict" where it was saved as {"epoch": …, "state_dict": …}, "model.net" of one within another, "" the outermost. (string; if absent: the only state dict there is)
            key = "key": Words,
        }
        /// Write parameters as a file of weights that PyTorch loads: .pt and .pth (a state dict), .safetensors or .npz, by the ending.
        ///
        /// Parameters are what was trained, loaded, or a draw: `net.save("draw.pt", run.draw(0, 99), #{ like: "net.pt" })`, then in Python `net.load_state_dict(torch.load("draw.pt", weights_only=True))`. The options are those of `model.load`, with the names of the file on the left there as here. Numbers are float32. `target.save(path, parameters)` writes the network of a target whose prior or loss has parameters, too: these are left out. A relative path is below the folder of results. Returns the path.
        Save, save(model: Arc<dyn crate::model::Model>, path: String, parameters: crate::options::Value) = Into::into, crate::simulation::weights::SAVE => String {
            /// What each tensor of the file is in the model: #{ "0.weight": "w1", "0.bias": "b1" }. One * on both sides stands for any text: "module.*": "*" takes a beginning away. Names that are not mentioned stay as they are. (map from names in the file to names of the model; if absent: names are the model's; where none of the file is, its tensors are taken by shape and number if there is one reading only)
            rename = "rename": Anything,
            /// Matrices that are transposed on the way, by their names in the file or in the model; a * stands for any text, \[] is none. (array of names, or true for all matrices; if absent: none of those that have the model's names; of others called ….weight those that the layers of the model multiply as \[in, out], since PyTorch's Linear is \[out, in])
            transpose = "transpose": Anything,
            /// A file of weights that `model.load` reads with these options: the new one has its names, its order and its matrices the same way round. (string; if absent: by rename and transpose alone)
            like = "like": Words,
            /// Which state dict of a PyTorch file: "state_dict" where it was saved as {"epoch": …, "state_dict": …}, "model.net" of one within another, "" the outermost. (string; if absent: the only state dict there is)
            key = "key": Words,
            /// Which of several vectors, from 0. (integer, ≥ 0; if absent: there is one vector only)
            chain = "chain": Count,
        }
        /// Write parameters as a file of weights that PyTorch loads: .pt and .pth (a state dict), .safetensors or .npz, by the ending.
        ///
        /// Parameters are what was trained, loaded, or a draw: `net.save("draw.pt", run.draw(0, 99), #{ like: "net.pt" })`, then in Python `net.load_state_dict(torch.load("draw.pt", weights_only=True))`. The options are those of `model.load`, with the names of the file on the left there as here. Numbers are float32. `target.save(path, parameters)` writes the network of a target whose prior or loss has parameters, too: these are left out. A relative path is below the folder of results. Returns the path.
        SaveOfTarget, save_of_target(target: Arc<crate::target::Target>, path: String, parameters: crate::options::Value) = crate::verb::Either::Second, crate::simulation::weights::SAVE => String {
            /// What each tensor of the file is in the model: #{ "0.weight": "w1", "0.bias": "b1" }. One * on both sides stands for any text: "module.*": "*" takes a beginning away. Names that are not mentioned stay as they are. (map from names in the file to names of the model; if absent: names are the model's; where none of the file is, its tensors are taken by shape and number if there is one reading only)
            rename = "rename": Anything,
            /// Matrices that are transposed on the way, by their names in the file or in the model; a * stands for any text, \[] is none. (array of names, or true for all matrices; if absent: none of those that have the model's names; of others called ….weight those that the layers of the model multiply as \[in, out], since PyTorch's Linear is \[out, in])
            transpose = "transpose": Anything,
            /// A file of weights that `model.load` reads with these options: the new one has its names, its order and its matrices the same way round. (string; if absent: by rename and transpose alone)
            like = "like": Words,
            /// Which state dict of a PyTorch file: "state_dict" where it was saved as {"epoch": …, "state_dict": …}, "model.net" of one within another, "" the outermost. (string; if absent: the only state dict there is)
            key = "key": Words,
            /// Which of several vectors, from 0. (integer, ≥ 0; if absent: there is one vector only)
            chain = "chain": Count,
        }
        /// The exact law exp(-U/T) of a target of two parameters, on a grid: to compare samples with, or to draw as contours below them.
        Posterior, posterior(target: Arc<crate::target::Target>) = Into::into, crate::simulation::verbs::POSTERIOR => Arc<crate::diagnostic::Grid> {
            /// \[from, to] of the first parameter. (array of numbers, any finite number; must be given)
            x = "x": Numbers,
            /// \[from, to] of the second parameter. (array of numbers, any finite number; must be given)
            y = "y": Numbers,
            /// Cells along each axis. (integer, 2 … 2000; default `200`)
            cells = "cells": Count,
            /// Temperature T. (number, > 0; default `1`)
            temperature = "temperature": Number,
            /// Points per cell and axis at which the density is taken. (integer, 1 … 20; default `2`)
            points = "points": Count,
        }
        /// A saved run, finished or not, read from its folder: the same object as in the session that made it, with the draws so far.
        ///
        /// `run.done` says whether it is finished, `run.step` how far it is. One that is not finished goes on when its script is run with --resume, by `%continue FOLDER` in a session, and where a verb has the option `resume`.
        Open, open(folder: String) = Into::into, crate::simulation::verbs::OPEN => Arc<crate::simulation::run::Run> {
        }
        /// All runs in and below a folder, or in `runs`, in order of time: what `ergodic ls` lists. Nothing of their numbers is read.
        ///
        /// A run is what one script has left in its folder, or a session, or a grid. `open` reads one of its parts.
        Runs, runs(folder: String) = Into::into, crate::report::runs::LIST => Arc<crate::report::runs::Runs> {
        }
        /// Estimate the local learning coefficient at a point: `λ̂ = nβ(⟨L(w)⟩ - L(w0))` over `exp(-nβ L(w) - ½γ|w-w0|²)`.
        ///
        /// Lau et al. (2024); Hitchcock & Hoogland (2025). L is the loss of the target; its own energy scale and prior are left out, since nβ and γ take their place. Works with every sampler. Stochastic-gradient samplers give the losses of their own minibatches, compared with those at w0 on the same minibatches; samplers that accept or reject give the loss over all examples.
        ///
        /// `print(estimate)` shows estimate, error bar, thermometer and failed chains. Fields: `estimate`, `mcse` (standard error from the effective sample size), `verdict` ("converged", "not yet" or "wrong") and `reasons` (what is missing or wrong), `chains` (one by one), `spread`, `ess`, `rhat`, `virial`, `failed`, `truth` (where it is known, else NaN), `relative_error`, `run`, `halved`, `levels` (the estimates at single nβ, if there are several). An estimate that has not converged, is negative, or whose thermometer is off says so in its first line. Check the step size with `halve: true`: a step that is too large makes λ̂ too large, and the thermometer hot.
        Llc, llc(target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = Into::into, crate::simulation::llc::LLC => Arc<crate::simulation::llc::Estimate> {
            /// w0, the point whose coefficient is estimated and where all chains start; a single vector: choose one of several by `start.at(0)`. (Parameters; must be given)
            start = "start": Handle<crate::target::prior::Parameters>,
            /// Chains. (integer, 1 … 100000; default `4`)
            chains = "chains": Count,
            /// Steps per chain, burn-in included. (integer, 2 … 1000000000000; default `5000`)
            steps = "steps": Count,
            /// Go on after `steps` until nothing is missing at any temperature: R̂ and ESS of every observable reach these numbers, and the error of the thermometer and the round trips of a ladder are what *converged* asks for. `#{}` takes the numbers of the verdict. It is looked at after `steps` steps, and each time that there are a quarter more. Draws are those of one run of that length. `burn_in` counts from `steps`, and samplers adapt during it; where a look finds that the beginning of the draws differs from their end, by more than four standard errors, burn-in ends at that look. A run that has ended goes on with `resume` and a larger `at_most`. (map of rhat: number, > 1; default 1.01 · ess: number, > 0; default 400 · at_most: integer, 1 … 100000000000000; default 100 times `steps`; if absent: it ends after `steps`)
            until = "until": Entries,
            /// Fraction of the steps (if below 1) or number of steps (if 1 or more) that is not averaged. (number, ≥ 0; default `0.5`)
            burn_in = "burn_in": Number,
            /// Steps per record. Losses that come with gradients are averaged over all steps in between, so nothing is lost. (integer, ≥ 1; if absent: 10; 1 for samplers that accept or reject)
            every = "every": Count,
            /// γ, the strength of the localisation ½γ|w-w0|². (number, ≥ 0; default `1`)
            gamma = "gamma": Number,
            /// β, the inverse temperature of the likelihood. (number, > 0; if absent: 1/ln n)
            beta = "beta": Number,
            /// nβ, in place of `beta`. At several nβ the chains of all step in one run, each nβ with its own, and λ̂ is the slope of the mean loss against 1/nβ. (number > 0, or array of several; if absent: n·beta)
            nbeta = "nbeta": Anything,
            /// L(w0): "paired" on the minibatch of every step, which cancels most of the noise · "full" over all examples, once · "first_batch" on the first minibatch of each chain (Hitchcock & Hoogland 2025). Without minibatches it is always "full". ("paired" · "full" · "first_batch"; default `paired`)
            baseline = "baseline": OneOf<choices::Baseline>,
            /// The parameters that move (weight-restricted coefficient): names of tensors ("w1"), slices ("w1\[0]" and "w1\[2..5]" along the first dimension, "w1\[:, 0..16]" along the second), or what several names begin with ("block1.attn"), or a head of a transformer ("block2.attn.head3", of model::pretrained "transformer.h.1.attn.head2"). (name of a part, or array of names; if absent: all parameters move)
            restrict = "restrict": Anything,
            /// What else to record along the chains, in `estimate.run`; observable::example_losses() is needed for `estimate.influence()`, `.susceptibilities()` and `.singular_fluctuation()`. (array of Observables; if absent: nothing)
            observe = "observe": Handles<Box<dyn crate::observable::Observable>>,
            /// Whether to run again with half the step size (of `pseudo_langevin` the ratio) and twice the steps: the change shows the error of discretisation. The estimate is extrapolated to step zero where the sampler states the order of its error: ε of `sgld`, `sghmc` and `ohzeki_ichiki`, δt² of `langevin` with full gradients, the ratio of `pseudo_langevin`. (true or false; default `false`)
            halve = "halve": Flag,
            /// A chain whose |w| exceeds this many times max(|w0|, √N) has left its region and is stopped as failed. (number, > 0; default `1000`)
            region = "region": Number,
            /// Seed of this run. (integer, ≥ 0; if absent: from --seed and the name of the run)
            seed = "seed": Count,
            /// Name of the run and of its folder. (string; if absent: llc-1, llc-2, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// Estimate the local learning coefficient at every checkpoint of a training: λ̂ with its error bar against epoch or step.
        ///
        /// `checkpoints` is a training that kept some (`train(…, #{ checkpoints: \[0, 1, 3, 10] })`), an array of parameters, or the path of a folder of files of weights (.safetensors, .pt, .pth, .npz, or a folder with one such file for each), as PyTorch users have them: they are read as by `model.load`, and their steps are in their names ("step-1000", "checkpoint-1000"). At every point it is the estimate of `llc`, with chains that start there and are localised there. All points are one job with one folder, one checkpoint and one progress: it is interrupted and continued within a point. Points step side by side where there are more threads than chains.
        ///
        /// `print(curve)` is a table with R̂, ESS, thermometer and verdict of every point, `plot::llc_curve(curve)` draws λ̂ and the loss. Where training has not ended w0 is no minimum, and λ̂ can be negative: the verdict says so. Fields, arrays in order of the points: `at`, `estimate`, `mcse`, `loss`, `rhat`, `ess`, `virial`; `verdict` (the worst) and `reasons`; `to_map()` has all numbers, with the seed by which `llc` gives the same estimate.
        LlcCurve, llc_curve(checkpoints: Arc<crate::simulation::trained::Trained>, target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = Into::into, crate::simulation::llc::curve::LLC_CURVE => Arc<crate::simulation::llc::curve::Curve> {
            /// Chains. (integer, 1 … 100000; default `4`)
            chains = "chains": Count,
            /// Steps per chain at every point, burn-in included. (integer, 2 … 1000000000000; default `5000`)
            steps = "steps": Count,
            /// Fraction of the steps (if below 1) or number of steps (if 1 or more) that is not averaged. (number, ≥ 0; default `0.5`)
            burn_in = "burn_in": Number,
            /// Steps per record. Losses that come with gradients are averaged over all steps in between, so nothing is lost. (integer, ≥ 1; if absent: 10; 1 for samplers that accept or reject)
            every = "every": Count,
            /// γ, the strength of the localisation ½γ|w-w0|². (number, ≥ 0; default `1`)
            gamma = "gamma": Number,
            /// β, the inverse temperature of the likelihood. (number, > 0; if absent: 1/ln n)
            beta = "beta": Number,
            /// nβ, in place of `beta`. (number, > 0; if absent: n·beta)
            nbeta = "nbeta": Number,
            /// L(w0): "paired" on the minibatch of every step, which cancels most of the noise · "full" over all examples, once · "first_batch" on the first minibatch of each chain (Hitchcock & Hoogland 2025). Without minibatches it is always "full". ("paired" · "full" · "first_batch"; default `paired`)
            baseline = "baseline": OneOf<choices::Baseline>,
            /// The parameters that move (weight-restricted coefficient): names of tensors ("w1"), slices ("w1\[0]" and "w1\[2..5]" along the first dimension, "w1\[:, 0..16]" along the second), or what several names begin with ("block1.attn"), or a head of a transformer ("block2.attn.head3", of model::pretrained "transformer.h.1.attn.head2"). (name of a part, or array of names; if absent: all parameters move)
            restrict = "restrict": Anything,
            /// Which chain of a training of several. (integer, ≥ 0; default `0`)
            chain = "chain": Count,
            /// Where the points are along the curve, increasing. (array of numbers, any finite number; if absent: epochs of a training, steps in the names of files, else 0, 1, 2, …)
            at = "at": Numbers,
            /// What each tensor of the file is in the model: #{ "0.weight": "w1", "0.bias": "b1" }. One * on both sides stands for any text: "module.*": "*" takes a beginning away. Names that are not mentioned stay as they are. (map from names in the file to names of the model; if absent: names are the model's; where none of the file is, its tensors are taken by shape and number if there is one reading only)
            rename = "rename": Anything,
            /// Matrices that are transposed on the way, by their names in the file or in the model; a * stands for any text, \[] is none. (array of names, or true for all matrices; if absent: none of those that have the model's names; of others called ….weight those that the layers of the model multiply as \[in, out], since PyTorch's Linear is \[out, in])
            transpose = "transpose": Anything,
            /// Which state dict of a PyTorch file: "state_dict" where it was saved as {"epoch": …, "state_dict": …}, "model.net" of one within another, "" the outermost. (string; if absent: the only state dict there is)
            key = "key": Words,
            /// Seed, from which every point has its own. (integer, ≥ 0; if absent: from --seed and the name of the curve)
            seed = "seed": Count,
            /// Name of the curve and of its folder. (string; if absent: llc_curve-1, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// Estimate the local learning coefficient at every checkpoint of a training: λ̂ with its error bar against epoch or step.
        ///
        /// `checkpoints` is a training that kept some (`train(…, #{ checkpoints: \[0, 1, 3, 10] })`), an array of parameters, or the path of a folder of files of weights (.safetensors, .pt, .pth, .npz, or a folder with one such file for each), as PyTorch users have them: they are read as by `model.load`, and their steps are in their names ("step-1000", "checkpoint-1000"). At every point it is the estimate of `llc`, with chains that start there and are localised there. All points are one job with one folder, one checkpoint and one progress: it is interrupted and continued within a point. Points step side by side where there are more threads than chains.
        ///
        /// `print(curve)` is a table with R̂, ESS, thermometer and verdict of every point, `plot::llc_curve(curve)` draws λ̂ and the loss. Where training has not ended w0 is no minimum, and λ̂ can be negative: the verdict says so. Fields, arrays in order of the points: `at`, `estimate`, `mcse`, `loss`, `rhat`, `ess`, `virial`; `verdict` (the worst) and `reasons`; `to_map()` has all numbers, with the seed by which `llc` gives the same estimate.
        LlcCurveOfCheckpoints, llc_curve_of_checkpoints(checkpoints: crate::options::Value, target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = crate::verb::Either::Second, crate::simulation::llc::curve::LLC_CURVE => Arc<crate::simulation::llc::curve::Curve> {
            /// Chains. (integer, 1 … 100000; default `4`)
            chains = "chains": Count,
            /// Steps per chain at every point, burn-in included. (integer, 2 … 1000000000000; default `5000`)
            steps = "steps": Count,
            /// Fraction of the steps (if below 1) or number of steps (if 1 or more) that is not averaged. (number, ≥ 0; default `0.5`)
            burn_in = "burn_in": Number,
            /// Steps per record. Losses that come with gradients are averaged over all steps in between, so nothing is lost. (integer, ≥ 1; if absent: 10; 1 for samplers that accept or reject)
            every = "every": Count,
            /// γ, the strength of the localisation ½γ|w-w0|². (number, ≥ 0; default `1`)
            gamma = "gamma": Number,
            /// β, the inverse temperature of the likelihood. (number, > 0; if absent: 1/ln n)
            beta = "beta": Number,
            /// nβ, in place of `beta`. (number, > 0; if absent: n·beta)
            nbeta = "nbeta": Number,
            /// L(w0): "paired" on the minibatch of every step, which cancels most of the noise · "full" over all examples, once · "first_batch" on the first minibatch of each chain (Hitchcock & Hoogland 2025). Without minibatches it is always "full". ("paired" · "full" · "first_batch"; default `paired`)
            baseline = "baseline": OneOf<choices::Baseline>,
            /// The parameters that move (weight-restricted coefficient): names of tensors ("w1"), slices ("w1\[0]" and "w1\[2..5]" along the first dimension, "w1\[:, 0..16]" along the second), or what several names begin with ("block1.attn"), or a head of a transformer ("block2.attn.head3", of model::pretrained "transformer.h.1.attn.head2"). (name of a part, or array of names; if absent: all parameters move)
            restrict = "restrict": Anything,
            /// Which chain of a training of several. (integer, ≥ 0; default `0`)
            chain = "chain": Count,
            /// Where the points are along the curve, increasing. (array of numbers, any finite number; if absent: epochs of a training, steps in the names of files, else 0, 1, 2, …)
            at = "at": Numbers,
            /// What each tensor of the file is in the model: #{ "0.weight": "w1", "0.bias": "b1" }. One * on both sides stands for any text: "module.*": "*" takes a beginning away. Names that are not mentioned stay as they are. (map from names in the file to names of the model; if absent: names are the model's; where none of the file is, its tensors are taken by shape and number if there is one reading only)
            rename = "rename": Anything,
            /// Matrices that are transposed on the way, by their names in the file or in the model; a * stands for any text, \[] is none. (array of names, or true for all matrices; if absent: none of those that have the model's names; of others called ….weight those that the layers of the model multiply as \[in, out], since PyTorch's Linear is \[out, in])
            transpose = "transpose": Anything,
            /// Which state dict of a PyTorch file: "state_dict" where it was saved as {"epoch": …, "state_dict": …}, "model.net" of one within another, "" the outermost. (string; if absent: the only state dict there is)
            key = "key": Words,
            /// Seed, from which every point has its own. (integer, ≥ 0; if absent: from --seed and the name of the curve)
            seed = "seed": Count,
            /// Name of the curve and of its folder. (string; if absent: llc_curve-1, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// A deep linear network with true weights, its data, and its exact learning coefficient: a problem of the benchmark of Hitchcock & Hoogland (2025, D.1).
        ///
        /// Fields: `model`, `data`, `target`, `start` (the true weights), `widths`, `rank`, `truth` (λ, Aoyagi's formula), `multiplicity`, and `regular`: half the rank of the Jacobian at the weights. λ is the least coefficient over all weights with this product, and that of the weights themselves is at least `regular`: where that is larger, estimates at `start` rightly lie above λ. With `widths` and `rank` the weights are those where both agree.
        LlcProblem, llc_problem() = Into::into, crate::simulation::llc::problems::LLC_PROBLEM => Arc<crate::simulation::llc::problems::Posed> {
            /// Class of random problems (Hitchcock & Hoogland 2025, table 1; "1K" is an addition): its name is roughly the number of parameters. ("1K" · "100K" · "1M" · "10M" · "100M"; if absent: "1K" unless widths are given)
            class = "class": Words,
            /// Which problem of the class. (integer, ≥ 0; default `0`)
            index = "index": Count,
            /// H_0 … H_M, in place of a class. All layers then have rank `rank` on shared units: the most singular weights with this product. (array of integers, ≥ 1; if absent: random)
            widths = "widths": Counts,
            /// Rank of the product, with `widths`. (integer, ≥ 0; if absent: 0)
            rank = "rank": Count,
            /// n, examples. (integer, 2 … 4294967295; default `1_000_000`)
            n = "n": Count,
            /// "rows" generates each example when it is read · "moments" compresses all of them to H_0 rows with the same second moments, which give the same loss (up to a constant) and gradient, exactly. ("rows" · "moments"; default `rows`)
            data = "data": OneOf<choices::Data>,
            /// Standard deviation of the noise on a component of a target. (number, ≥ 0; default `0.5`)
            noise = "noise": Number,
            /// Seed of shapes, weights and data. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
        }
        /// Estimate the learning coefficients of many deep linear networks by several samplers at several step sizes (Hitchcock & Hoogland 2025, figs. 3, 5 to 8).
        ///
        /// `print(benchmark)` is a table with a line per sampler and step size: `failed`, the share of problems without an estimate; `error`, mean and standard deviation of (λ̂-λ)/λ, and its median; `local`, the mean against the larger of λ and half the rank of the Jacobian, a lower bound of the local coefficient; `order`, the share of pairs of problems that are in the right order; `coverage`, how often λ lies within 1.96 estimated standard errors. `plot::llc_benchmark(benchmark)` draws it. Finished cells are saved: an interrupted benchmark is continued with `--resume`.
        LlcBenchmark, llc_benchmark() = Into::into, crate::simulation::llc::benchmark::LLC_BENCHMARK => Arc<crate::simulation::llc::table::Benchmark> {
            /// Class of problems. ("1K" · "100K" · "1M" · "10M" · "100M"; default `1K`)
            class = "class": Words,
            /// Number of problems. (integer, 1 … 100000; default `10`)
            problems = "problems": Count,
            /// Index of the first problem. (integer, ≥ 0; default `0`)
            first = "first": Count,
            /// The samplers; their step sizes are those of the next option. (array of Samplers; if absent: sgld, rmsprop_sgld, adam_sgld, sghmc, sgnht, each with batch 500, preconditioners running as in the paper)
            samplers = "samplers": Handles<crate::sampler::ConfiguredSampler>,
            /// Step sizes of every sampler. (array of numbers, or array with such an array per sampler; if absent: each sampler's own)
            step_sizes = "step_sizes": Anything,
            /// Chains per cell. (integer, 1 … 1000; default `1`)
            chains = "chains": Count,
            /// Steps per chain. (integer, 10 … 1000000000; default `50_000`)
            steps = "steps": Count,
            /// Fraction of the steps (if below 1) or number of steps (if 1 or more) that is not averaged. (number, ≥ 0; default `0.9`)
            burn_in = "burn_in": Number,
            /// γ, the strength of the localisation ½γ|w-w0|². (number, ≥ 0; default `1`)
            gamma = "gamma": Number,
            /// L(w0): "paired" on the minibatch of every step, which cancels most of the noise · "full" over all examples, once · "first_batch" on the first minibatch of each chain (Hitchcock & Hoogland 2025). Without minibatches it is always "full". ("paired" · "full" · "first_batch"; default `paired`)
            baseline = "baseline": OneOf<choices::Baseline>,
            /// n, examples. (integer, 2 … 4294967295; default `1_000_000`)
            n = "n": Count,
            /// "rows" generates each example when it is read · "moments" compresses all of them to H_0 rows with the same second moments, which give the same loss (up to a constant) and gradient, exactly. ("rows" · "moments"; default `rows`)
            data = "data": OneOf<choices::Data>,
            /// Standard deviation of the noise on a component of a target. (number, ≥ 0; default `0.5`)
            noise = "noise": Number,
            /// Seed of problems and chains. (integer, ≥ 0; default `1`)
            seed = "seed": Count,
            /// Name of the benchmark and of its folder. (string; if absent: benchmark-1, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// Find the step size (and nβ and γ) for a learning coefficient, without knowing the answer.
        ///
        /// Every step size is tried at every nβ and γ, and objections to it are named: failed chains, a virial that is hot (the step is too large) or cold (chains have not relaxed), chains that have not converged, an estimate that the next smaller step does not confirm, a wide error bar. Recommended is a trial on a plateau: there is no objection to it, a neighbouring step gives the same, and of several nβ a neighbouring one does too; among these, the one with the smallest error bar at the nβ nearest to `nbeta`. Of several γ it is the weakest whose estimate the next stronger one confirms, or the only one at which a trial qualifies. Error bars of different nβ are not ranked: they belong to different quantities. Where no trial qualifies, as for large singular models whose flat directions do not relax in any affordable number of steps, `steadiest` is the trial at which the estimate changes least with the step size, which is what one would choose by eye: a provisional estimate; `to_map()` has all of it. `plot::llc_calibration(calibration)` draws λ̂ over step size and γ as a heat map.
        CalibrateLlc, calibrate_llc(target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = Into::into, crate::simulation::llc::calibrate::CALIBRATE => Arc<crate::simulation::llc::calibration::Calibration> {
            /// w0, as in `llc`. (Parameters; must be given)
            start = "start": Handle<crate::target::prior::Parameters>,
            /// Step sizes to try, in place of the sampler's own (for `pseudo_langevin`, its ratio). If they are not given, short runs go from the sampler's own step, by factors of four, to the largest at which chains survive and are less than twice too hot; samplers that accept or reject are tried around their own step. (array of numbers, > 0; if absent: 7, by halving the largest stable one)
            step_sizes = "step_sizes": Numbers,
            /// The nβ at which a step is wanted. (number, > 0; if absent: n/ln n)
            nbeta = "nbeta": Number,
            /// Values of nβ to try. (array of numbers, > 0; if absent: `nbeta`, and as many decades around it as `decades` says)
            nbetas = "nbetas": Numbers,
            /// Decades of nβ to try below and above `nbeta`, where `nbetas` is not given. (integer, 0 … 4; default `0`)
            decades = "decades": Count,
            /// Values of γ to try. The default goes from 1, the usual one, by decades to where 1/√γ is the size of a weight: a weaker γ lets flat directions go further than weights are large. (array of numbers, ≥ 0; if absent: `gamma` if it is given, else 1, 10, … to N/|w0|², at most 1000)
            gammas = "gammas": Numbers,
            /// Chains at each point. (integer, 2 … 100000; default `4`)
            chains = "chains": Count,
            /// Steps per chain, burn-in included. (integer, 20 … 1000000000000; default `5000`)
            steps = "steps": Count,
            /// Part of the steps that is not averaged. (number, 0 < x < 1; default `0.5`)
            burn_in = "burn_in": Number,
            /// The only γ to try. (number, ≥ 0; if absent: several are tried)
            gamma = "gamma": Number,
            /// L(w0): "paired" on the minibatch of every step, which cancels most of the noise · "full" over all examples, once · "first_batch" on the first minibatch of each chain (Hitchcock & Hoogland 2025). Without minibatches it is always "full". ("paired" · "full" · "first_batch"; default `paired`)
            baseline = "baseline": OneOf<choices::Baseline>,
            /// Relative error of discretisation and relaxation that is tolerated. (number, > 0; default `0.05`)
            tolerance = "tolerance": Number,
            /// Seed of all trials. (integer, ≥ 0; if absent: from --seed)
            seed = "seed": Count,
            /// Name, and that of the folder of its checkpoint. (string; if absent: calibrate_llc-1, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// ln Z of a model, from the draws of a ladder: the log evidence ln ∫ exp(-s·L(w)) p(w) dw where the hottest rung is the prior p.
        ///
        /// By thermodynamic integration (trapezoid, and with its curvature corrected; the error includes draws and spacing), stepping stones from hot to cold, from cold to hot and their average, and MBAR, each with its standard error. They use the same draws, so they agree better than their errors suggest; where they do not, rungs are too far apart.
        ///
        /// `exchange` with `prior_rung: true` gives such a run; a `sweep` with a uniform_box prior that observes cost gives ln Z relative to its hottest temperature. With energy: "sum" and cross-entropies exp(-s·L) is the likelihood; with squared errors it is that of a Gaussian of variance ½, up to π^(-n·outputs/2).
        ///
        /// Fields: verdict ("converged", "not yet": a ladder without a round trip, a rung with R̂ or too few effective draws, rungs too far apart; "wrong": estimators more than 4 joint errors apart) and reasons, ln_z and error (those of MBAR), trapezoid, thermodynamic_integration, stepping_stone_forward, stepping_stone_backward, stepping_stone, mbar, each also with _error; lower_bound and upper_bound (Gibbs-Bogoliubov).
        Evidence, evidence(run: Arc<crate::simulation::run::Run>) = Into::into, crate::simulation::evidence::EVIDENCE => Arc<crate::simulation::evidence::Evidence> {
            /// The temperature whose ln Z is wanted: 1 for the evidence. (number, > 0; default `1`)
            temperature = "temperature": Number,
        }
        /// The density of states g(E) and the microcanonical entropy ln g, from all draws of a ladder by MBAR, with errors.
        ///
        /// Z(β) = ∫ g(E) exp(-βE) dE, with Z = 1 at the first rung, the hottest: g is the share of the prior at each energy where that is the prior. E is what the run tempers: U in a `sweep` or an `exchange` with `temper: "energy"` (a sweep must observe energy), s·L with "likelihood" (a sweep must observe cost), R in an exchange with "prior". Neighbouring temperatures must overlap in E.
        ///
        /// `#{ energy, edges, ln_g, ln_g_error, beta, beta_error, effective_draws, betas, ln_z, ln_z_error }`: `energy` has the middles of the bins, `ln_g` the logarithm of the mean of g over each; `beta` is d ln g/dE, the microcanonical 1/T, from each middle to the next (where it rises with E, a canonical ensemble has two phases); `ln_z` is ln Z at each inverse temperature of `betas`, relative to the first. Bins without draws are NaN; errors of those with fewer than ten `effective_draws` are not to be believed.
        ///
        /// `density_of_states(betas, draws, #{…})` takes draws from elsewhere: increasing inverse temperatures, and for each an array of chains, as `run.draws(name, t)` has them, of a quantity E in laws ∝ exp(-βE)·p(w).
        DensityOfStates, density_of_states(run: Arc<crate::simulation::run::Run>) = Into::into, crate::simulation::evidence::DENSITY_OF_STATES => serde_json::Value {
            /// Bins of the energy, of equal width, from the lowest to the highest draw. (integer, 1 … 1000; default `30`)
            bins = "bins": Count,
            /// Edges of the bins, increasing. (array of numbers, any finite number; if absent: by `bins`)
            edges = "edges": Numbers,
        }
        /// The Laplace approximation at the optimum reached from `start`: ln Z = -E/T - R - ln ∫ e^-R + (N/2) ln 2π - ½ ln det H, and draws.
        ///
        /// MacKay (1992); Baldock (2019), eq. 16, which leaves out (N/2) ln 2π. H is the Hessian of E/T + R; products with it are symmetric differences of gradients; ln det H is exact for small N and by stochastic Lanczos quadrature (Ubaru, Chen & Saad 2017) for large. `start` is a result of `train`, `run.params()` or `parameters(\[…])`, of which the first vector is taken. It approximates one mode by a Gaussian; singular models, such as networks, have more: compare with `evidence`.
        ///
        /// With `structure`, H is the Gauss-Newton matrix of E/T, or a part of it, and the curvature of R: `laplace.draws(n, seed)` are parameters from the Gaussian N(w*, H⁻¹) (MacKay 1992; Ritter, Botev & Barber 2018 for `"kronecker"`; Daxberger et al. 2021), to be scored by `target.prediction`, and `laplace.params()` is w*. The precision of the prior is that of the target, nothing is tuned.
        ///
        /// Fields: ln_z, error (of the quadrature only), ln_det, ln_det_error, stopping, at_floor, smallest, largest, likelihood_energy, prior_energy, largest_gradient, slack (½|g|²/λ: by how much a nearby minimum may be deeper).
        Laplace, laplace(target: Arc<crate::target::Target>, start: crate::options::Value) = Into::into, crate::simulation::evidence::laplace::LAPLACE => Arc<crate::simulation::evidence::Laplace> {
            /// T of the likelihood: 1 for the evidence. (number, > 0; default `1`)
            temperature = "temperature": Number,
            /// The curvature of E: its Hessian, for ln Z alone; or, for draws too, its Gauss-Newton matrix: all of it (N² numbers), a Kronecker product for each layer, the diagonal, or all of that of the last layer, the others staying at the optimum, so that there is no ln Z. These need fully connected layers, and the loss "cross_entropy" or "squared_error". ("hessian" · "full" · "kronecker" · "diagonal" · "last_layer"; default `hessian`)
            structure = "structure": OneOf<choices::Structure>,
            /// ln det of the Hessian from all its eigenvalues (N products with it, then N³), or by stochastic Lanczos quadrature; "auto" is exact up to N = 1000. ("auto" · "exact" · "lanczos"; default `auto`)
            method = "method": OneOf<choices::Method>,
            /// Random vectors of the quadrature. (integer, ≥ 2; default `16`)
            probes = "probes": Count,
            /// Lanczos steps per vector. (integer, ≥ 4; default `64`)
            steps = "steps": Count,
            /// Steps of minimisation beforehand, from the start. (integer, ≥ 0; default `2000`)
            polish = "polish": Count,
            /// Eigenvalues below this are raised to it: they are noise of single precision, or the point is not a minimum. (number, > 0; if absent: the prior's precision, if it is Gaussian)
            floor = "floor": Number,
        }
        /// Tempered sequential Monte Carlo: populations that go from draws of the prior to exp(-s·L/T - R), and ln Z on the way.
        ///
        /// A stage weighs the particles by exp(-(β' - β)E), with β' = 1/T' chosen so that the effective sample size falls to `ess`, resamples them systematically and moves each by `moves` steps of the sampler (Del Moral, Doucet & Jasra 2006; Jasra et al. 2011). An alternative to `exchange` with a prior rung where no ladder is known: it finds one. The step size follows the acceptance of the particles, and masses are the inverse variances of all of them where the sampler adapts its own (`adapt_mass`); its `rank` and `masses` do not count then. With hmc, nuts, mala, mams and metropolis (and snaper, whose length is not learnt here), on the CPU.
        ///
        /// This is population annealing (Hukushima & Iba 2003; Machta 2010) with populations of constant size: `temperatures` takes its schedule, and the families that are left say whether populations were large enough. With ν the share of a family in R particles, ρ_t = R Σν² is the mean square and ρ_s = R exp(Σ ν ln ν) the entropic family size; R/ρ_s families are left in effect, and Wang, Machta & Katzgraber (2015) ask for 100.
        ///
        /// Each population is resampled on its own, and they share only temperatures, step sizes and masses; ln Z is that of their mean Z, and its error bar comes from their scatter alone, so it holds whatever the particles of one population have in common. Where they scatter by more than 1, the scatter is the error bar, and ln Z most likely too small. A mode that no draw from the prior has found is lost, and no error bar shows it: compare with `exchange`.
        ///
        /// `evidence(smc)` is for `compare`, `smc.params()` a start for `sample` or `exchange`, `smc\["temperatures"]` a ladder. Fields: ln_z, error, ln_z_populations, temperatures, effective_share, acceptance, step_size, moves (per stage), families (draws of the prior that each population descends from), family_mean_square (ρ_t) and family_entropic (ρ_s) of each, scatter (standard deviation of ln Z over the populations), particles, populations, failed, parameters, seconds.
        Smc, smc(target: Arc<crate::target::Target>, sampler: Arc<crate::sampler::ConfiguredSampler>) = Into::into, crate::simulation::smc::SMC => Arc<crate::simulation::smc::Smc> {
            /// Members of a population. (integer, 2 … 1000000; default `128`)
            particles = "particles": Count,
            /// Populations, each resampled on its own; the error bars come from their scatter. (integer, 1 … 10000; default `8`)
            populations = "populations": Count,
            /// Effective sample size, as a share of the particles, that is left at the next temperature: the larger, the more stages. (number, 0 < x < 1; default `0.7`)
            ess = "ess": Number,
            /// The temperatures of all stages, falling; the last is where it ends, in the place of `temperature`. The choice of temperatures then adds no bias to Z. (array of numbers, > 0; if absent: found by `ess`)
            temperatures = "temperatures": Numbers,
            /// Steps of the sampler at each stage. (integer, 1 … 1000000; default `10`)
            moves = "moves": Count,
            /// Move on at a stage after `moves` until the populations agree about the energy, by R̂ with the particles as draws, and copies of one particle have come apart: so many particles are effective, all populations together. `#{}` asks for R̂ ≤ 1.01 and 400. (map of rhat: number, > 1; default 1.01 · ess: number, > 0; default 400 · at_most: integer, 1 … 100000000000000; default 100 times `moves`; if absent: it goes on after `moves`)
            until = "until": Entries,
            /// The temperature where it ends. (number, > 0; default `1`)
            temperature = "temperature": Number,
            /// Seed of the populations. (integer, ≥ 0; if absent: from --seed and the name)
            seed = "seed": Count,
            /// Name, and that of the folder of the result. (string; if absent: smc-1, …)
            name = "name": Words,
            /// Folder of a run that was interrupted or killed, as "runs/notebook-1/sample-1": it goes on there, under its name and bit for bit, if the target, the sampler and all other options are the same. One that is finished is returned as it is. (string; if absent: a new run begins)
            resume = "resume": Words,
        }
        /// ln Z by tempered sequential Monte Carlo, for `compare` and tables. Fields: ln_z and error, smc and smc_error.
        EvidenceOfSmc, evidence_of_smc(smc: Arc<crate::simulation::smc::Smc>) = Into::into, crate::simulation::evidence::EVIDENCE_OF_POPULATIONS => Arc<crate::simulation::evidence::Evidence> {
        }
    }
}

/// The functions that start builders of verbs.
#[rustfmt::skip]
pub mod functions {
    pub use super::verbs::{target, target_of_potential, analytic, train, sample, sweep, exchange, benchmark, validate, verify, verify_of_run, compare, autocorrelation, overlaps, two_time, predict, loo, weights, load, save, save_of_target, posterior, open, runs, llc, llc_curve, llc_curve_of_checkpoints, llc_problem, llc_benchmark, calibrate_llc, evidence, density_of_states, laplace, smc, evidence_of_smc};
}
