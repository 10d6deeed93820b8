//! Tests of tables.

use super::super::testing::{Folder, build, gzip, message, text};
use super::*;

const NONE: (&str, Value) = ("test", Value::Float(0.0));

/// The data set of a file with this content, without a test split.
fn load(content: impl AsRef<[u8]>, more: &[(&str, Value)]) -> Result<Arc<Dataset>> {
    let f = Folder::new();
    let mut given = vec![("path", text(&f.write("t.csv", content))), NONE];
    given.extend_from_slice(more);
    build(&ENTRY, &given)
}

fn refused(content: impl AsRef<[u8]>, more: &[(&str, Value)]) -> String {
    match load(content, more) {
        Ok(d) => panic!("built {d}"),
        Err(e) => e.to_string(),
    }
}

fn inputs(s: &Split) -> Vec<f32> {
    let mut x = vec![0.0; s.rows * s.dim];
    s.copy(0..s.rows, &mut x);
    x
}

#[test]
fn tables_are_read_with_and_without_header_gzip_and_byte_order_mark() {
    let plain = "1, 2.5,0\n-3e0,4,1\n";
    let with_header = format!("a,b,y\n{plain}");
    let marked = format!("\u{feff}{with_header}");
    let spaced = format!("\r\n{}\r\n", plain.replace('\n', "\r\n"));
    for content in [
        plain.as_bytes(),
        with_header.as_bytes(),
        marked.as_bytes(),
        spaced.as_bytes(),
        &gzip(plain.as_bytes()),
    ] {
        let d = load(content, &[]).unwrap();
        assert_eq!((d.dim, d.classes, d.outputs), (2, 2, 2));
        assert_eq!(inputs(&d.train), [1.0, 2.5, -3.0, 4.0]);
        assert_eq!(d.train.labels().unwrap(), [0, 1]);
    }
    assert!(
        load(&marked, &[("label", text("a"))])
            .is_err_and(|e| e.to_string().contains("column 'a' is -3"))
    );
}

#[test]
fn columns_are_chosen_by_name_or_number() {
    let t = "y;a;b\n0;1;2\n1;3;4\n";
    let semicolon = ("separator", text(";"));
    for label in [text("y"), Value::Int(0), Value::Int(-3)] {
        let d = load(t, &[semicolon.clone(), ("label", label)]).unwrap();
        assert_eq!(inputs(&d.train), [1.0, 2.0, 3.0, 4.0]);
    }
    let d = load("4\t1\n1\t0\n", &[("separator", text("tab"))]).unwrap();
    assert_eq!(d.train.labels().unwrap(), [1, 0]);
    let more = |label: Value| [semicolon.clone(), ("label", label)];
    assert!(refused(t, &more(Value::Int(3))).contains("has the columns 0 to 2"));
    assert!(refused(t, &more(Value::Int(i64::MIN))).contains("has the columns 0 to 2"));
    assert!(refused(t, &more(text("yy"))).contains("no column 'yy'; did you mean 'y'?"));
    assert!(refused(t, &more(Value::Bool(true))).contains("column name or a whole number"));
    assert!(refused("1,0\n2,1", &[("label", text("y"))]).contains("no header line"));
}

#[test]
fn regression_takes_one_or_more_target_columns() {
    let t = "a,u,v\n1,0.5,2\n2,1.5,3\n3,2.5,4\n";
    let regression = ("task", text("regression"));
    let d = load(t, std::slice::from_ref(&regression)).unwrap();
    assert_eq!((d.classes, d.outputs, d.dim), (0, 1, 2));
    let both = |list| [regression.clone(), ("targets", Value::List(list))];
    let d = load(t, &both(vec![text("v"), Value::Int(1)])).unwrap();
    assert_eq!(
        d.train.values().unwrap(),
        (2, &[2.0, 0.5, 3.0, 1.5, 4.0, 2.5][..])
    );
    assert!(d.to_string().contains("regression of 2 values"));
    assert!(refused(t, &both(vec![text("v"), Value::Int(2)])).contains("names column 'v' twice"));
    assert!(refused(t, &both(vec![])).contains("must be an array"));
    assert!(
        refused(t, &both(vec![text("a"), text("u"), text("v")]))
            .contains("all 3 columns are targets")
    );
    let list = ("targets", Value::List(vec![text("v")]));
    assert!(refused(t, std::slice::from_ref(&list)).contains("needs task: \"regression\""));
    assert!(refused(t, &[list, ("label", text("u"))]).contains("not both"));
}

#[test]
fn splits_are_stratified_and_scaled_by_the_training_rows() {
    let t: String = (0..100)
        .map(|i| format!("{},{},{}\n", i, i * i, i % 4))
        .collect();
    let more = [
        ("test", Value::Float(0.2)),
        ("validation", Value::Float(0.25)),
        ("scale", text("standard")),
    ];
    let f = Folder::new();
    let mut given = vec![("path", text(&f.write("t.csv", t)))];
    given.extend_from_slice(&more);
    let d = build(&ENTRY, &given).unwrap();
    assert_eq!(d.train.class_counts(4), [15; 4]);
    for s in [&d.test, &d.validation] {
        assert_eq!(s.as_ref().unwrap().class_counts(4), [5; 4]);
    }
    let x = inputs(&d.train);
    for j in 0..2 {
        let column = || x.iter().skip(j).step_by(2).map(|&x| x as f64);
        assert!(
            column().sum::<f64>().abs() < 1e-4
                && (column().map(|x| x * x).sum::<f64>() - 60.0).abs() < 1e-3
        );
    }
    assert_eq!(d.train, build(&ENTRY, &given).unwrap().train);
    given.push(("seed", Value::Int(2)));
    assert_ne!(d.train, build(&ENTRY, &given).unwrap().train);
}

#[test]
fn malformed_tables_are_refused_with_line_and_column() {
    let plain: [(&str, &str); 15] = [
        ("1,2,0\n1,1\n", "line 2: 2 cells, but the first line has 3"),
        ("a,b\n1,0\n\n1,2,3\n", "line 4: 3 cells"),
        (
            "a,b,y\n1,x,0\n",
            "line 2, column 'b': \"x\" is not a number",
        ),
        (
            "1,2,0\n1,x,0\n",
            "line 2, column 1 (from 0): \"x\" is not a number",
        ),
        (
            "1,2,0\n1,,0\n",
            "line 2, column 1 (from 0): the cell is empty",
        ),
        (
            "1,2,0\nNaN,2,0\n",
            "line 2, column 0 (from 0): \"NaN\" is no value; missing: \"drop\"",
        ),
        ("1,2,0\n1,-inf,0\n", "\"-inf\" is not a finite"),
        ("1,2,0\n1,1e39,0\n", "\"1e39\" is not a finite"),
        (
            "1,2,0\n1,2,-1\n",
            "line 2: column 2 (from 0) is -1, but a class label",
        ),
        ("1,2,0\n1,2,0.5\n", "is 0.5, but a class label"),
        ("1,2,0\n1,2,70000\n", "is 70000, but a class label"),
        ("1,2,1\n1,2,1\n", "are all 1: with one class"),
        ("1,2,1\n1,2,2\n", "no row has the label 0"),
        ("a,b,y\n", "holds no examples, only a header line"),
        ("1,x,0\n1,2,1\n", "2 of 3 cells are numbers; say header"),
    ];
    for (content, expected) in plain {
        let m = refused(content, &[]);
        assert!(m.contains(expected) && m.contains("t.csv"), "{m}");
    }
    assert!(refused("\n\n", &[]).contains("holds no examples"));
    assert!(refused("0\n1\n", &[]).contains("is the separator ',' right?"));
    assert!(refused([0xfe, b',', b'1', b'\n'], &[("header", text("no"))]).contains("is not UTF-8"));
    assert!(refused("a,y\n1,0\n2,1", &[("header", text("no"))]).contains("line 1, column 0"));
    let long = "x".repeat(9999);
    assert!(refused(format!("1,0\n{long},1"), &[]).len() < 300);
    let whole = gzip(b"1,2,0\n3,4,1\n");
    assert!(refused(&whole[..whole.len() - 5], &[]).contains("is damaged"));
}

#[test]
fn wrong_options_are_refused() {
    for s in ["", ",,", "\"", "é"] {
        assert!(
            refused("1,0\n2,1", &[("separator", text(s))]).contains("must be one ASCII character")
        );
    }
    let m = message(&ENTRY, &[("path", text("no-such.csv"))]);
    assert!(m.contains("there is no such file"), "{m}");
    let m = refused("1,0\n2,1\n3,0\n", &[("validation", Value::Float(0.01))]);
    assert!(
        m.contains("leaves 0 of 3 rows for the validation split"),
        "{m}"
    );
}

#[test]
fn a_name_of_several_columns_chooses_none() {
    let table = "x,y,x\n1,0,2\n3,1,4\n";
    let e = refused(table, &[("label", text("x")), ("task", text("regression"))]);
    assert!(
        e.contains("2 columns named 'x', numbers 0, 2; choose one by its number"),
        "{e}"
    );
    let by_number = [("label", Value::Int(2)), ("task", text("regression"))];
    assert_eq!(
        inputs(&load(table, &by_number).unwrap().train),
        [1.0, 0.0, 3.0, 1.0]
    );
    // Inputs may be called the same.
    assert_eq!(
        inputs(&load(table, &[("label", text("y"))]).unwrap().train),
        [1.0, 2.0, 3.0, 4.0]
    );
}

const PENGUINS: &str = "species,island,bill,sex\nGentoo,Biscoe,46.1,male\nAdelie,Dream,39.5,female\nAdelie,Torgersen,NA,male\nChinstrap,Dream,50,?\n";

fn words(list: &[&str]) -> Value {
    Value::List(list.iter().map(|w| text(w)).collect())
}

#[test]
fn labels_and_categories_are_words_in_alphabetical_order() {
    let more = [
        ("label", text("species")),
        ("inputs", words(&["island", "bill"])),
        ("categories", words(&["island"])),
        ("missing", text("drop")),
    ];
    let d = load(PENGUINS, &more).unwrap();
    assert_eq!(
        d.class_names.as_ref().unwrap()[..],
        ["Adelie", "Chinstrap", "Gentoo"]
    );
    assert_eq!((d.dim, d.classes), (3, 3));
    assert_eq!(d.train.labels().unwrap(), [2, 0, 1]);
    assert_eq!(
        inputs(&d.train),
        [1.0, 0.0, 46.1, 0.0, 1.0, 39.5, 0.0, 1.0, 50.0]
    );
    let shown = d.to_string();
    for part in [
        "0 = Adelie, 1 = Chinstrap, 2 = Gentoo",
        "column 'island': Biscoe, Dream",
        "1 line with missing cells",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    // Without a header words stand only where they may.
    let d = load("1,2,b\n3,4,a\n", &[]).unwrap();
    assert_eq!(
        (d.train.labels().unwrap(), inputs(&d.train)),
        (&[1, 0][..], vec![1.0, 2.0, 3.0, 4.0])
    );
    // Whole numbers are the labels that they are; a word among them makes words of all.
    assert_eq!(
        load("1,2,10\n3,4,9\n5,6,x\n", &[("header", text("no"))])
            .unwrap()
            .train
            .labels()
            .unwrap(),
        [0, 1, 2]
    );
}

#[test]
fn what_words_cannot_be_is_said() {
    let label = ("label", text("species"));
    for (more, expected) in [
        (
            vec![label.clone()],
            "line 2, column 'island': \"Biscoe\" is not a number; name the column in 'categories'",
        ),
        (
            vec![label.clone(), ("inputs", words(&["bill"]))],
            "line 4, column 'bill': \"NA\" is no value; missing: \"drop\"",
        ),
        (
            vec![label.clone(), ("inputs", words(&["species"]))],
            "column 'species' is an input and a target",
        ),
        (
            vec![
                label.clone(),
                ("inputs", words(&["bill"])),
                ("categories", words(&["sex"])),
            ],
            "names column 'sex', which is no input",
        ),
        (
            vec![label.clone(), ("inputs", words(&["beak"]))],
            "no column 'beak'",
        ),
        (
            vec![
                ("label", text("species")),
                ("inputs", words(&["bill", "bill"])),
            ],
            "names column 'bill' twice",
        ),
    ] {
        let said = refused(PENGUINS, &more);
        assert!(said.contains(expected), "{said}");
    }
    assert!(refused("a,y\n1,x\n2,x\n", &[]).contains("all labels in column 'y' are 'x'"));
    assert!(
        refused("a,y\nNA,x\n?,x\n", &[("missing", text("drop"))])
            .contains("every line has missing cells")
    );
}

#[test]
fn a_second_file_is_the_test_split() {
    let f = Folder::new();
    let train = f.write("train.csv", "a,c,y\n1,u,dog\n2,v,cat\n3,u,dog\n");
    let load = |test: &str| {
        let test = f.write("test.csv", test);
        let more = [
            ("path", text(&train)),
            ("test_path", text(&test)),
            ("categories", words(&["c"])),
            ("scale", text("standard")),
        ];
        build(&ENTRY, &more)
    };
    let d = load("a,c,y\n2,u,cat\n").unwrap();
    let test = d.test.as_ref().unwrap();
    assert_eq!((d.train.rows, test.rows, d.dim), (3, 1, 3));
    // The words have the numbers of the first file, and its training rows the scale.
    assert_eq!((test.labels().unwrap(), inputs(test)[0]), (&[0][..], 0.0));
    for (content, expected) in [
        ("a,c,y\n2,u,cow\n", "line 2: column 'y'"),
        ("a,c,y\n2,w,cat\n", "line 2: column 'c'"),
        ("a,y\n2,cat\n", "column 'c'"),
        ("a,d,y\n2,u,cat\n", "'c'"),
    ] {
        let e = load(content).unwrap_err();
        assert!(format!("{e:#}").contains(expected), "{e:#}");
    }
}

/// The cells of each row of a split, as they are shown.
fn rows(s: &Split) -> Vec<Vec<f64>> {
    (0..s.rows).map(|i| s.shown(i).0).collect()
}

fn map(entries: &[(&str, Value)]) -> Value {
    let own = |(k, v): &(&str, Value)| (k.to_string(), v.clone());
    Value::Map(entries.iter().map(own).collect())
}

/// Values are those of `pandas.DataFrame.fillna` by hand: mean and median of the training rows, 1 2 4 9, and nothing of the test row, 100.
#[test]
fn missing_cells_are_filled_by_the_training_rows_alone() {
    let t = "a,b,c,s,y\n1,1,u,train,0.5\n2,?,v,train,1\n,4,,train,2\n4,9,u,train,3\n9,NA,u,train,4\n100,,v,test,5\n,2,v,test,6\n";
    let more = |missing: Value| {
        [
            ("task", text("regression")),
            ("split", text("s")),
            ("categories", words(&["c"])),
            ("missing", missing),
        ]
    };
    let by_column = [
        ("a", text("mean")),
        ("b", text("median")),
        ("c", text("none given")),
    ];
    let d = load(t, &more(map(&by_column))).unwrap();
    // c is one of "none given", u, v.
    let train = [
        [1.0, 1.0, 0.0, 1.0, 0.0],
        [2.0, 4.0, 0.0, 0.0, 1.0],
        [4.0, 4.0, 1.0, 0.0, 0.0],
        [4.0, 9.0, 0.0, 1.0, 0.0],
        [9.0, 4.0, 0.0, 1.0, 0.0],
    ];
    assert_eq!(rows(&d.train), train);
    let test = [[100.0, 4.0, 0.0, 0.0, 1.0], [4.0, 2.0, 0.0, 0.0, 1.0]];
    assert_eq!(rows(d.test.as_ref().unwrap()), test);
    let shown = d.to_string();
    for part in [
        "'a': 2 missing cells = the mean over the training rows, 4",
        "'b': 3 missing cells = the median over the training rows, 4",
        "none given, u, v; a missing cell is none given",
        "row  a  b  c = none given  c = u  c = v    y\n  0  1  1               0      1      0  0.5",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    // New rows are filled with the same numbers.
    let row = |cells: &[Value]| d.prepare(&[Value::List(cells.to_vec())]);
    let new = [Value::Float(f64::NAN), text("NA"), text("")];
    assert_eq!(row(&new).unwrap(), [4.0, 4.0, 1.0, 0.0, 0.0]);
    let new = [Value::Int(7), text("2.5"), text("v")];
    assert_eq!(row(&new).unwrap(), [7.0, 2.5, 0.0, 0.0, 1.0]);
    let new = [Value::Int(7), text("2.5"), text("w")];
    assert!(row(&new).unwrap_err().to_string().contains("'w' is not in"));
}

#[test]
fn rules_of_missing_cells_are_those_of_the_column() {
    let t = "a,b,c,s,y\n1,1,u,train,0.5\n2,?,v,train,1\n,4,,train,2\n4,9,u,train,3\n9,NA,u,train,4\n100,,v,test,5\n,2,v,test,6\n";
    let more = |missing: Value| {
        [
            ("task", text("regression")),
            ("split", text("s")),
            ("categories", words(&["c"])),
            ("missing", missing),
        ]
    };
    let others = load(t, &more(map(&[("c", text("u")), ("*", Value::Float(0.5))]))).unwrap();
    assert_eq!(rows(&others.train)[1], [2.0, 0.5, 0.0, 1.0]);
    assert_eq!(rows(&others.train)[2], [0.5, 4.0, 1.0, 0.0]);
    let dropped = load(t, &more(map(&[("a", text("mean")), ("*", text("drop"))]))).unwrap();
    assert_eq!(
        rows(&dropped.train),
        [[1.0, 1.0, 1.0, 0.0], [4.0, 9.0, 1.0, 0.0]]
    );
    for (missing, expected) in [
        (
            text("mean"),
            "line 4, column 'c': the cell is empty; missing: \"drop\"",
        ),
        (
            text("meen"),
            "is \"meen\", but must be \"refuse\", \"drop\"",
        ),
        (text("meen"), "did you mean 'mean'?"),
        (
            map(&[("c", text("mean"))]),
            "column 'c' holds words, so \"mean\" cannot stand there",
        ),
        (
            map(&[("y", text("mean"))]),
            "column 'y' is no input, and is not filled",
        ),
        (map(&[("s", text("drop"))]), "neither an input nor a target"),
        (map(&[("d", text("drop"))]), "has no column 'd'"),
        (map(&[("a", text("some"))]), "is \"some\", but must be"),
    ] {
        let said = refused(t, &more(missing));
        assert!(said.contains(expected), "{said}");
    }
    let said = refused(
        "a,y\n?,1\n,2\n",
        &[("task", text("regression")), ("missing", text("mean"))],
    );
    assert!(
        said.contains("column 'a' has no value in the training rows"),
        "{said}"
    );
}

#[test]
fn dates_are_days_since_the_first_one() {
    let t = "when,y\n2024-03-01T06:00,0\n2024-02-28,1\n2024-03-10 12:00:00,0\n";
    let dates = ("dates", words(&["when"]));
    let d = load(t, std::slice::from_ref(&dates)).unwrap();
    // 2024 has a 29th of February.
    assert_eq!(rows(&d.train), [[2.25], [0.0], [11.5]]);
    assert!(
        d.to_string()
            .contains("date        'when': days since 2024-02-28"),
        "{d}"
    );
    let new = d.prepare(&[Value::List(vec![text("2024-02-29")])]).unwrap();
    assert_eq!(new, [1.0]);
    let said = refused("when,y\n2024-02-30,0\n", &[dates]);
    assert!(
        said.contains("line 2, column 'when': \"2024-02-30\" is no date as 2024-03-01"),
        "{said}"
    );
    assert!(
        refused(t, &[])
            .contains("\"2024-03-01T06:00\" is not a number; name the column in 'dates'")
    );
}

#[test]
fn several_files_are_one_table_and_a_column_tells_the_splits() {
    let f = Folder::new();
    let a = f.write("a b.csv", "x,s,y\n1,train,dog\n2,Test,cat\n");
    let b = f.write("b.csv", "x,s,y\n3,val,dog\n4,train,cat\n");
    let paths = |list: &[&String]| Value::List(list.iter().map(|p| text(p)).collect());
    let given = [("path", paths(&[&a, &b])), ("split", text("s"))];
    let d = build(&ENTRY, &given).unwrap();
    assert_eq!(rows(&d.train), [[1.0], [4.0]]);
    assert_eq!(rows(d.test.as_ref().unwrap()), [[2.0]]);
    assert_eq!(rows(d.validation.as_ref().unwrap()), [[3.0]]);
    assert_eq!(d.train.labels().unwrap(), [1, 0]);
    let with = |more: (&'static str, Value)| {
        let mut given = given.to_vec();
        given.push(more);
        message(&ENTRY, &given)
    };
    assert!(with(("test", Value::Float(0.3))).contains("leave out 'test'"));
    assert!(with(("test_path", text(&a))).contains("give 'test_path' or 'split', not both"));
    let c = f.write("c.csv", "x,s,y\n1,dev,dog\n2,test,cat\n");
    let said = message(&ENTRY, &[("path", text(&c)), ("split", text("s"))]);
    assert!(
        said.contains("c.csv', line 2, column 's': 'dev' is none of train, test and validation"),
        "{said}"
    );
    let d = f.write("d.csv", "x,s,z\n1,train,dog\n");
    let said = message(&ENTRY, &[("path", paths(&[&a, &d])), ("split", text("s"))]);
    assert!(said.contains("d.csv' has other columns than '"), "{said}");
    let said = message(&ENTRY, &[("path", Value::Int(3))]);
    assert!(
        said.contains("must be a path or an array of paths"),
        "{said}"
    );
}

#[test]
fn numbers_have_the_digits_of_the_file() {
    let t = "a,y\n1.008224924,0.1\n0.5,1e-300\n";
    let d = load(t, &[("task", text("regression"))]).unwrap();
    assert_eq!(d.train.shown(0), (vec![1.008224924], vec![0.1]));
    assert_eq!(inputs(&d.train), [1.008224924_f64 as f32, 0.5]);
    assert_eq!(d.train.targets_f64(), [0.1, 1e-300]);
}

#[test]
fn what_pandas_writes_beside_the_data_is_no_input() {
    let d = load(",a,b,y\n0,1.5,True,0\n1,2.5,false,1\n", &[]).unwrap();
    assert_eq!(rows(&d.train), [[1.5, 1.0], [2.5, 0.0]]);
    let said = refused("0,1,2\n0.5,1.5,0\n0.7,1.1,1\n", &[]);
    assert!(
        said.contains("may be names of columns or an example; say header"),
        "{said}"
    );
    let d = load("0,1,2\n0.5,1.5,0\n0.7,1.1,1\n", &[("header", text("yes"))]).unwrap();
    assert_eq!(d.train.rows, 2);
}

/// A column of which each line has its own word, and one that is too wide for the memory.
#[test]
fn words_that_tell_nothing_are_no_categories() {
    let line = |i: usize| format!("id{i},{},{}\n", i % 7, i % 2);
    let table = (0..60).map(line).collect::<String>();
    let with = |column: i64| vec![("categories", Value::List(vec![Value::Int(column)]))];
    let said = refused(&table, &with(0));
    assert!(
        said.contains("has another word in each of its 60 lines"),
        "{said}"
    );
    assert_eq!(
        load(
            &table,
            &[
                ("inputs", Value::List(vec![Value::Int(1)])),
                with(1)[0].clone()
            ]
        )
        .unwrap()
        .dim,
        7
    );
}

/// Rows that a stray quote would take for one cell.
#[test]
fn quotes_that_do_not_close_are_refused() {
    let inputs = ("inputs", words(&["a", "b"]));
    let label = ("label", text("y"));
    let read = |content: &str| load(content, &[inputs.clone(), label.clone()]);
    let table = |notes: [&str; 6]| {
        let rows = notes.iter().enumerate();
        let rows: String = rows
            .map(|(i, note)| format!("{i},1,{},{note}\n", i % 2))
            .collect();
        format!("a,b,y,note\n{rows}")
    };
    let said = |notes| read(&table(notes)).unwrap_err().to_string();
    let never = said(["x", "\"6 feet", "x", "x", "x", "x"]);
    assert!(
        never.contains("line 3: a quote opens a cell here, and never closes"),
        "{never}"
    );
    let later = said(["x", "\"6 feet", "x", "x", "\"7 feet", "x"]);
    assert!(
        later.contains("line 3") && later.contains("in the middle of another in line 6"),
        "{later}"
    );
    // Quotes within cells that have none around them, doubled ones, and cells of several lines.
    let fine = [
        "6\" pipe",
        "\"two\nlines, \"\"quoted\"\"\"",
        "\"\"",
        "\"x\" ",
        "x\"",
        "\"last\nline\"",
    ];
    assert_eq!(read(&table(fine)).unwrap().train.rows, 6);
    let spaces = load(
        "1 \"two\nlines\" 0\n2 x 1\n",
        &[
            ("separator", text(" ")),
            ("inputs", Value::List(vec![Value::Int(0)])),
        ],
    );
    assert_eq!(spaces.unwrap().train.rows, 2);
}

/// Words of another encoding would become the same.
#[test]
fn what_is_no_utf_8_is_refused_where_it_counts() {
    let bytes = |label: &str| {
        let mut out = Vec::new();
        for (i, word) in ["M\u{fc}nchen", "M\u{e4}nchen", "Rom"]
            .iter()
            .cycle()
            .take(9)
            .enumerate()
        {
            let latin: Vec<u8> = word.chars().map(|c| c as u32 as u8).collect();
            out.extend([format!("{i},{},", i % 3).as_bytes(), &latin, b"\n"].concat());
        }
        [format!("a,n,{label}\n").as_bytes(), &out].concat()
    };
    let said = refused(
        bytes("y"),
        &[("label", text("y")), ("inputs", words(&["a"]))],
    );
    assert!(
        said.contains("line 2") && said.contains("is not UTF-8; convert"),
        "{said}"
    );
    // The sign for what is no character is one.
    let sign = "a,y\n1,\u{fffd}\n2,x\n";
    assert_eq!(load(sign, &[("label", text("y"))]).unwrap().classes, 2);
    let unused = [("label", text("n")), ("inputs", words(&["a"]))];
    assert_eq!(load(bytes("city"), &unused).unwrap().classes, 3);
    let wide: Vec<u8> = "\u{feff}a,y\n1,0\n2,1\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let said = refused(wide, &[]);
    assert!(said.contains("UTF-16"), "{said}");
}

/// A new row is read as the file's rows are.
#[test]
fn cells_of_new_rows_are_those_of_the_file() {
    let d = load("on,x,y\nTrue,1,0\nFalse,2,1\n", &[]).unwrap();
    let row = |on: Value, x: Value| d.prepare(&[Value::List(vec![on, x])]);
    for on in [text("True"), Value::Bool(true), Value::Int(1), text(" 1 ")] {
        assert_eq!(row(on, Value::Float(1.0)).unwrap(), inputs(&d.train)[..2]);
    }
    let dated = load(
        "day,y\n2024-03-01,0\n2024-03-03,1\n",
        &[("dates", words(&["day"]))],
    )
    .unwrap();
    let on = |day: Value| dated.prepare(&[Value::List(vec![day])]);
    assert_eq!(on(text("2024-03-03")).unwrap(), on(Value::Int(2)).unwrap());
    assert!(on(Value::Float(f64::INFINITY)).is_err());
    for x in [text("inf"), text("1e300"), Value::Float(f64::INFINITY)] {
        let said = row(Value::Int(1), x).unwrap_err().to_string();
        assert!(
            said.contains("column 'x'") && said.contains("not a finite"),
            "{said}"
        );
    }
}
